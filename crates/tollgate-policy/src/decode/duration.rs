//! The value type for durations.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tollgate_core::Millis;
use tollgate_core::time::MAX_WINDOW;

use super::number::digits;
use super::{Decode, unexpected, unexpected_but};
use crate::report::Report;
use crate::tree::Node;

/// A duration such as `250ms`, `10s`, `15m`, `1h`, `1d`, `1w` or `1h30m`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duration(pub(crate) Millis);

/// The regular expression that describes a duration in the JSON schema.
pub(super) const PATTERN: &str =
    "^(?=.)([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";

const UNITS: [(&str, u64); 6] = [
    ("w", 604_800_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl Decode for Duration {
    const EXPECTED: &'static str = "a duration such as 10s, 15m, 1h or 1h30m";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let Some(text) = node.text() else {
            unexpected(node, Self::EXPECTED, report);
            return None;
        };
        match millis(text) {
            Ok(millis) => Some(Self(millis)),
            Err(hint) => {
                unexpected_but(node, Self::EXPECTED, &hint, report);
                None
            }
        }
    }
}

/// Parses a duration such as `1h30m`, in which larger units must come first.
///
/// # Errors
/// A hint for the error message: how to write the duration.
pub(super) fn millis(text: &str) -> Result<Millis, Cow<'static, str>> {
    const SHAPE: &str = "a whole number with its unit: ms, s, m, h, d or w";
    if digits(text).is_ok() {
        return Err(
            format!("which unit? {text}ms, {text}s, {text}m, {text}h, {text}d or {text}w").into()
        );
    }
    if text.starts_with('-') {
        return Err("it cannot be negative".into());
    }
    if text.contains('.') {
        return Err("no fractions: 1h30m, 90m, 500ms".into());
    }
    let mut total: u64 = 0;
    let mut smaller_than = u64::MAX;
    let mut rest = text;
    while !rest.is_empty() {
        let number_end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        let unit_end =
            after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        rest = after;
        let number = digits(number).map_err(|hint| hint.unwrap_or(Cow::Borrowed(SHAPE)))?;
        if matches!(unit, "mo" | "M" | "month" | "months") {
            return Err("there is no unit for months, which differ in length: write 30d".into());
        }
        let Some((_, unit)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(SHAPE.into());
        };
        if *unit >= smaller_than {
            return Err("larger units first, each once: 1h30m".into());
        }
        smaller_than = *unit;
        total = total.saturating_add(number.saturating_mul(*unit));
    }
    match Millis::new(total) {
        Millis::ZERO if text.is_empty() => Err(SHAPE.into()),
        Millis::ZERO => Err("the shortest is 1ms".into()),
        millis if millis > MAX_WINDOW => {
            Err(format!("the longest is {MAX_WINDOW}, ten years").into())
        }
        millis => Ok(millis),
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration such as 250ms, 10s, 15m, 1h, 1d, 1w or 1h30m.",
            "type": "string",
            "pattern": PATTERN,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_in_whole_units() {
        for (text, expected) in [
            ("1ms", 1),
            ("250ms", 250),
            ("10s", 10_000),
            ("15m", 900_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
            ("1w", 604_800_000),
            ("1h30m", 5_400_000),
            ("1m30s500ms", 90_500),
            ("3653d", MAX_WINDOW.get()),
        ] {
            assert_eq!(millis(text), Ok(Millis::new(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_is_refused() {
        for text in [
            "",
            "1",
            "h",
            "1 h",
            "1 hour",
            "-1s",
            "+1s",
            "1.5h",
            "10x",
            "0s",
            "0h0m",
            "30m1h",
            "1h1h",
            "01h",
            "1H",
            "3654d",
            "99999999999999999999d",
            "1h30",
            "1e3s",
            "1_000s_",
        ] {
            assert!(millis(text).is_err(), "{text}");
        }
    }
}
