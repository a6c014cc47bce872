//! What a request costs, as written.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::decode::{Decode, Duration, Size, Text, Whole, keys};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

/// What a request costs: known when it arrives, or only with its answer.
#[derive(Debug)]
pub(crate) enum Cost {
    Known(Whole),
    Metered(Box<Metered>),
}

keys! {
    /// A cost that the answer tells: exactly one of the sources, and what is reserved until then.
    struct Metered as "a metered cost" {
        /// The whole number in this header of the answer.
        from_header: Text,
        /// The whole number at this JSON pointer in the answer's body, such as `/usage/total_tokens`; in a stream of server-sent events the last one there.
        from_json: Text,
        /// The length of the answer's body: a unit for each so many bytes begun, such as `1KiB`.
        from_size: Size,
        /// The time from the request's arrival to the end of the answer's body: a unit for each so long begun, such as `1ms`.
        from_time: Duration,
        /// What is reserved until the cost is known. By default 1.
        reserve: Reserve,
    }
}

/// What is reserved: always the same, or what the request says.
#[derive(Debug)]
pub(crate) enum Reserve {
    Known(Whole),
    From(Box<ReserveFrom>),
}

keys! {
    /// What is reserved, as the request says it: exactly one of the sources.
    struct ReserveFrom as "what is reserved", requires "default" {
        /// The whole number in this header of the request.
        from_header: Text,
        /// The whole number at this JSON pointer in the request's body, such as `/max_tokens`. `tollgate proxy` reads JSON bodies of up to 256 KiB for it.
        from_json: Text,
        /// What is reserved if the request has no such value.
        default: Whole,
        /// The most that is reserved, whatever the request says.
        max: Whole,
    }
}

impl Decode for Cost {
    const WHAT: &'static str = "a whole number, or a metered cost such as { from_time: 1ms }";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match node.kind {
            NodeKind::Mapping(_) => Some(Self::Metered(Box::new(Metered::decode(node, report)?))),
            _ => Whole::decode(node, report).map(Self::Known),
        }
    }
}

impl Decode for Reserve {
    const WHAT: &'static str = "a whole number, or what the request says, such as \
                                { from_json: /max_tokens, default: 1024 }";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match node.kind {
            NodeKind::Mapping(_) => Some(Self::From(Box::new(ReserveFrom::decode(node, report)?))),
            _ => Whole::decode(node, report).map(Self::Known),
        }
    }
}

impl JsonSchema for Cost {
    fn schema_name() -> Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (known, metered) =
            (generator.subschema_for::<Whole>(), generator.subschema_for::<Metered>());
        json_schema!({
            "description": "What a request costs: known when it arrives, or only with its answer.",
            "anyOf": [known, metered],
        })
    }
}

impl JsonSchema for Reserve {
    fn schema_name() -> Cow<'static, str> {
        "Reserve".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (known, from) =
            (generator.subschema_for::<Whole>(), generator.subschema_for::<ReserveFrom>());
        json_schema!({
            "description": "What is reserved: always the same, or what the request says.",
            "anyOf": [known, from],
        })
    }
}
