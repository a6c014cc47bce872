//! The value type for statuses of responses.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tollgate_core::STATUSES;

use super::{Decode, unexpected, unexpected_but};
use crate::report::Report;
use crate::tree::Node;

/// A range of statuses: its first and its last status. A file writes a status such as `404`, a
/// class such as `5xx` or a range such as `400-499`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusRange(pub(crate) u16, pub(crate) u16);

impl Decode for StatusRange {
    const EXPECTED: &'static str =
        "a status such as 404, a class such as 5xx or a range such as 400-499";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let Some(text) = node.text() else {
            unexpected(node, Self::EXPECTED, report);
            return None;
        };
        let Some((first, last)) = range(text) else {
            unexpected(node, Self::EXPECTED, report);
            return None;
        };
        let hint = match (first, last) {
            _ if first < STATUSES.0 || last > STATUSES.1 => "statuses are 100 to 599",
            _ if first > last => "write the smaller status first",
            _ => return Some(Self(first, last)),
        };
        unexpected_but(node, Self::EXPECTED, hint, report);
        None
    }
}

fn range(text: &str) -> Option<(u16, u16)> {
    let status = |text: &str| {
        let is_status = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_status.then(|| text.parse().ok()).flatten()
    };
    if let Some(class) = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")) {
        let first: u16 = status(class).filter(|_| class.len() == 1)?;
        return Some((100 * first, 100 * first + 99));
    }
    match text.split_once('-') {
        Some((first, last)) => Some((status(first.trim())?, status(last.trim())?)),
        None => status(text).map(|status| (status, status)),
    }
}

impl JsonSchema for StatusRange {
    fn schema_name() -> Cow<'static, str> {
        "StatusRange".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A status such as 404, a class such as 5xx or a range such as 400-499.",
            "anyOf": [
                { "type": "integer", "minimum": STATUSES.0, "maximum": STATUSES.1 },
                { "type": "string", "pattern": "^([1-5](xx|XX)|[1-5][0-9][0-9]( *- *[1-5][0-9][0-9])?)$" },
            ],
        })
    }
}
