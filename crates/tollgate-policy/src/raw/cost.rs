//! The key `cost`: the cost of a request.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::decode::{Decode, Duration, Integer, Size, Text, keys};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

/// The cost of a request, which is known when the request arrives or only when the response is
/// complete.
#[derive(Debug)]
pub(crate) enum Cost {
    Known(Integer),
    Metered(Box<Metered>),
}

keys! {
    /// A cost that the response contains: exactly one source, and the units that are reserved until
    /// then.
    struct Metered as "a metered cost" {
        /// The whole number in this response header.
        from_header: Text,
        /// The whole number at this JSON pointer in the response body, such as
        /// `/usage/total_tokens`. In a stream of server-sent events, the last such number counts.
        from_json: Text,
        /// The length of the response body: one unit for each started block of this size, such as
        /// `1KiB`.
        from_size: Size,
        /// The time from the request's arrival to the end of the response body: one unit for each
        /// started period of this length, such as `1ms`.
        from_time: Duration,
        /// The units that are reserved until the cost is known. By default 1.
        reserve: Reserve,
    }
}

/// The units that are reserved: a fixed number, or a value from the request.
#[derive(Debug)]
pub(crate) enum Reserve {
    Known(Integer),
    From(Box<ReserveFrom>),
}

keys! {
    /// The units that are reserved, from a value in the request: exactly one source.
    struct ReserveFrom as "a reservation", requires "default" {
        /// The whole number in this request header.
        from_header: Text,
        /// The whole number at this JSON pointer in the request body, such as `/max_tokens`. For
        /// this, `tollgate proxy` reads JSON bodies of up to 256 KiB.
        from_json: Text,
        /// The units that are reserved if the request has no such value.
        default: Integer,
        /// The fewest units that are reserved, whatever the request's value. By default 1.
        min: Integer,
        /// The most units that are reserved, whatever the request's value.
        max: Integer,
    }
}

impl Decode for Cost {
    const EXPECTED: &'static str = "a whole number, or a metered cost such as { from_time: 1ms }";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match node.kind {
            NodeKind::Mapping(_) => Some(Self::Metered(Box::new(Metered::decode(node, report)?))),
            _ => Integer::decode(node, report).map(Self::Known),
        }
    }
}

impl Decode for Reserve {
    const EXPECTED: &'static str = "a whole number, or a value from the request such as \
                                { from_json: /max_tokens, default: 1024 }";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match node.kind {
            NodeKind::Mapping(_) => Some(Self::From(Box::new(ReserveFrom::decode(node, report)?))),
            _ => Integer::decode(node, report).map(Self::Known),
        }
    }
}

impl JsonSchema for Cost {
    fn schema_name() -> Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (known, metered) =
            (generator.subschema_for::<Integer>(), generator.subschema_for::<Metered>());
        json_schema!({
            "description": "The cost of a request: known on arrival, or only with the response.",
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
            (generator.subschema_for::<Integer>(), generator.subschema_for::<ReserveFrom>());
        json_schema!({
            "description": "The units that are reserved: a fixed number, or a value from the request.",
            "anyOf": [known, from],
        })
    }
}
