//! A rule, as written.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::Cost;
use super::choices::{ChargeMoment, OnFailureName, RuleModeName};
use super::shed::PriorityName;
use crate::decode::{
    Decode, Duration, Field, Names, OneOrMore, Spanned, Text, Whole, keys, unexpected,
};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

keys! {
    /// A rule: which requests meet which limits.
    struct Rule as "a rule", requires "limits" {
        /// Its name, for people and metrics. By default `rule-1`, `rule-2` and so on.
        name: Text,
        /// The requests it speaks of; without it, all.
        r#match: Conditions,
        /// The limits that a request is charged on, all or none of them: `core`, or `{ points: 5 }` with what it costs, or `{ tokens: { from_json: /usage/total_tokens } }` with what of the answer tells that. `[]` limits nothing.
        limits: OneOrMore<LimitUse>,
        /// Whether it refuses. By default `enforce`.
        mode: RuleModeName,
        /// When it charges. By default `on_arrival`. Of several rules that match, all must say `on_completion`.
        charge: ChargeMoment,
        /// What becomes of a request while the store has no answer. By default what `answers` says. Of several rules that match, the strictest decides.
        on_failure: OnFailureName,
        /// How much its requests matter when some are shed. By default `read` for GET, HEAD, OPTIONS and TRACE, else `write`. Of several rules that match, the highest word decides.
        priority: PriorityName,
        /// How long its requests wait for a place in flight where nothing but limits of `concurrency` refuses them. By default they do not wait.
        queue: Queue,
    }
}

keys! {
    /// A line in which requests wait for a place in flight, in the order in which they came.
    struct Queue as "a queue", requires "wait" {
        /// How long a request waits at most, such as `2s`; up to `60s`.
        wait: Duration,
        /// How many of one subject wait at a time on each node, up to 1,000; whoever comes then is refused at once. By default 100.
        length: Whole,
    }
}

keys! {
    /// Conditions that must all hold; of several values in one, any may.
    struct Conditions as "conditions" {
        /// The method, such as `GET`, or a list of them.
        method: OneOrMore<Text>,
        /// Path patterns: `/users/{id}` remembers a segment, `*` stands for any one, and `**` at the end for all that is left.
        path: OneOrMore<Text>,
        /// Hosts; `*.example.com` stands for every name below it.
        host: OneOrMore<Text>,
        /// Headers that must be there: a name, or `{ name: value }` for that very value.
        header: OneOrMore<WantedHeaders>,
        /// Subjects that the request must have a value for.
        has: OneOrMore<Text>,
        /// Subjects that the request must have no value for.
        lacks: OneOrMore<Text>,
    }
}

/// A limit by its name, and what it costs if that is written.
#[derive(Debug)]
pub(crate) struct LimitUse {
    pub(crate) limit: Spanned<String>,
    pub(crate) cost: Field<Cost>,
}

impl Decode for LimitUse {
    const WHAT: &'static str = "a limit such as core, or { core: 5 } with its cost";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        if let Some(name) = node.text() {
            let limit = Spanned { value: name.to_owned(), at: node.at, key: node.at };
            return Some(Self { limit, cost: Field::Absent });
        }
        let NodeKind::Mapping(pairs) = &node.kind else {
            unexpected(node, Self::WHAT, report);
            return None;
        };
        let [(key, _)] = pairs.as_slice() else {
            report.error(
                node.at,
                "expected one limit with its cost",
                "write a list: [core, { points: 5 }]",
            );
            return None;
        };
        let Some(name) = key.text() else {
            unexpected(key, "the name of a limit", report);
            return None;
        };
        let cost = Field::Value(Spanned::<Cost>::decode(&pairs[0].1, report)?);
        Some(Self { limit: Spanned { value: name.to_owned(), at: key.at, key: key.at }, cost })
    }
}

impl JsonSchema for LimitUse {
    fn schema_name() -> Cow<'static, str> {
        "LimitUse".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let cost = generator.subschema_for::<Cost>();
        json_schema!({
            "description": "A limit by its name, or the name with what a request costs.",
            "anyOf": [
                { "type": "string" },
                { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": cost },
            ],
        })
    }
}

/// Headers that must be there, each with the value it must have if that is written.
#[derive(Debug)]
pub(crate) struct WantedHeaders(pub(crate) Vec<(Spanned<String>, Option<Text>)>);

impl Decode for WantedHeaders {
    const WHAT: &'static str = "a header's name, or { name: value }";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        if let Some(name) = node.text() {
            let name = Spanned { value: name.to_owned(), at: node.at, key: node.at };
            return Some(Self(vec![(name, None)]));
        }
        if !matches!(node.kind, NodeKind::Mapping(_)) {
            unexpected(node, Self::WHAT, report);
            return None;
        }
        let Names(named) = Names::<Text>::decode(node, report)?;
        Some(Self(
            named.into_iter().filter_map(|named| Some((named.name, Some(named.value?)))).collect(),
        ))
    }
}

impl JsonSchema for WantedHeaders {
    fn schema_name() -> Cow<'static, str> {
        "WantedHeaders".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Text>();
        json_schema!({
            "description": "A header that must be there, or headers with the values they must have.",
            "anyOf": [
                { "type": "string" },
                { "type": "object", "additionalProperties": value },
            ],
        })
    }
}
