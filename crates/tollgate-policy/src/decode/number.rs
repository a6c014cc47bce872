//! The value type for whole numbers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tollgate_core::MAX_EXACT;

use super::{Decode, unexpected, unexpected_but};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

/// A whole number from 0 to 2^53 − 1, such as `5000` or `5_000`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer(pub(crate) u64);

impl Decode for Integer {
    const EXPECTED: &'static str = "a whole number such as 5000 or 5_000";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let Some(text) = node.text() else {
            unexpected(node, Self::EXPECTED, report);
            return None;
        };
        if matches!(node.kind, NodeKind::Quoted(_)) && digits(text).is_ok() {
            unexpected_but(node, Self::EXPECTED, "remove the quotes", report);
            return None;
        }
        match digits(text) {
            Ok(number) => Some(Self(number)),
            Err(Some(hint)) => {
                unexpected_but(node, Self::EXPECTED, &hint, report);
                None
            }
            Err(None) => {
                unexpected(node, Self::EXPECTED, report);
                None
            }
        }
    }
}

/// Parses a number of decimal digits, which can be grouped with `_`.
///
/// # Errors
/// A hint for the error message, or `None` if no hint fits.
pub(super) fn digits(text: &str) -> Result<u64, Option<Cow<'static, str>>> {
    let hint = |text: &'static str| Err(Some(Cow::Borrowed(text)));
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    if !is_number {
        let rest = text.trim_start_matches(['-', '+']);
        return match rest.get(..2) {
            _ if text.starts_with('-') && digits(rest).is_ok() => hint("it cannot be negative"),
            _ if text.starts_with('+') && digits(rest).is_ok() => hint("remove the sign"),
            Some("0x" | "0X" | "0o" | "0O" | "0b") => hint("write it in decimal digits"),
            _ if text.contains(['.', 'e', 'E']) && text.parse::<f64>().is_ok() => {
                hint("fractions and exponents are not allowed")
            }
            _ if text.ends_with("xx") => hint("name one status, such as 429"),
            _ if text.contains(',') => hint("group digits with `_`: 5_000"),
            _ => Err(None),
        };
    }
    if text.starts_with('_') || text.ends_with('_') || text.contains("__") || text.is_empty() {
        return Err(None);
    }
    if text.len() > 1 && text.starts_with('0') {
        return hint("remove the leading zero: some readers take it for octal");
    }
    let number: Option<u64> = text.replace('_', "").parse().ok();
    let largest = || Err(Some(format!("the largest number is {MAX_EXACT}").into()));
    number.filter(|number| *number <= MAX_EXACT).map_or_else(largest, Ok)
}

impl JsonSchema for Integer {
    fn schema_name() -> Cow<'static, str> {
        "Whole".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number such as 5000 or 5_000.",
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": MAX_EXACT },
                { "type": "string", "pattern": "^[1-9][0-9]*(_[0-9]+)+$" },
            ],
        })
    }
}
