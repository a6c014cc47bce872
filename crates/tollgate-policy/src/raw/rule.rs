//! The key `rules`: one rule.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::answers::RefuseAnswer;
use super::choices::{ChargeMoment, OnFailureName, RuleModeName};
use super::shed::PriorityName;
use super::{Conditions, Cost};
use crate::decode::{
    Decode, Duration, Field, Integer, OneOrMore, Spanned, StatusRange, Text, keys, unexpected,
};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

keys! {
    /// A rule: which limits apply to which requests.
    struct Rule as "a rule", requires "limits" {
        /// The name of the rule in messages and metrics. By default `rule-1`, `rule-2` and so on.
        name: Text,
        /// The requests that the rule applies to. By default all.
        r#match: Conditions,
        /// The limits that a request is charged on, all or none: `core`, or `{ points: 5 }` with a
        /// cost, or `{ tokens: { from_json: /usage/total_tokens } }` with a cost from the response.
        /// `[]` limits nothing.
        limits: OneOrMore<LimitUse>,
        /// Whether the rule refuses requests. By default `enforce`.
        mode: RuleModeName,
        /// When the rule charges. By default `on_arrival`. If several rules match, all must have
        /// `on_completion`.
        charge: ChargeMoment,
        /// The fallback for requests while the store does not answer. By default the fallback in
        /// `answers`. If several rules match, the strictest one applies.
        on_failure: OnFailureName,
        /// The priority of the requests for load shedding. By default `read` for GET, HEAD, OPTIONS
        /// and TRACE, otherwise `write`. If several rules match, the highest priority applies.
        priority: PriorityName,
        /// How long requests wait for a permit if only `concurrency` limits refuse them. By default
        /// they do not wait.
        queue: Queue,
        /// Statuses of the service's response for which the charges of the rule are refunded, such as
        /// `[304, 5xx]`. `[]` refunds none. By default those of `answers.refund`.
        refund: OneOrMore<StatusRange>,
        /// The response to a refused request, unless the limit that refused has its own. By default
        /// the response in `answers`. If several rules match, the first rule with a response
        /// applies.
        refuse: RefuseAnswer,
    }
}

keys! {
    /// A queue in which requests wait for a permit, in order of arrival.
    struct Queue as "a queue", requires "wait" {
        /// The longest time that a request waits, such as `2s`, up to `60s`.
        wait: Duration,
        /// The most requests of one subject that wait on each node at a time, up to 1,000. Further
        /// requests are refused immediately. By default 100.
        length: Integer,
    }
}

/// A limit's name, with a cost if one is set.
#[derive(Debug)]
pub(crate) struct LimitUse {
    pub(crate) limit: Spanned<String>,
    pub(crate) cost: Field<Cost>,
}

impl Decode for LimitUse {
    const EXPECTED: &'static str = "a limit such as core, or { core: 5 } with its cost";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        if let Some(name) = node.text() {
            let limit = Spanned { value: name.to_owned(), at: node.at, key: node.at };
            return Some(Self { limit, cost: Field::Absent });
        }
        let NodeKind::Mapping(pairs) = &node.kind else {
            unexpected(node, Self::EXPECTED, report);
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
            "description": "A limit's name, or the name with the cost of a request.",
            "anyOf": [
                { "type": "string" },
                { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": cost },
            ],
        })
    }
}
