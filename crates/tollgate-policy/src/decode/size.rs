//! The value type for sizes in bytes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tollgate_core::MAX_EXACT;

use super::number::digits;
use super::{Decode, unexpected, unexpected_but};
use crate::report::Report;
use crate::tree::Node;

/// A size such as `64MiB`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub(crate) u64);

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

impl Decode for Size {
    const EXPECTED: &'static str = "a size such as 64MiB";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let Some(text) = node.text() else {
            unexpected(node, Self::EXPECTED, report);
            return None;
        };
        match bytes(text) {
            Ok(bytes) => Some(Self(bytes)),
            Err(hint) => {
                unexpected_but(node, Self::EXPECTED, &hint, report);
                None
            }
        }
    }
}

fn bytes(text: &str) -> Result<u64, Cow<'static, str>> {
    const SHAPE: &str = "a whole number with its unit: B, KiB, MiB, GiB, TiB, kB, MB, GB or TB";
    if digits(text).is_ok() {
        return Err(format!("which unit? {text}B, {text}KiB, {text}MiB or {text}GiB").into());
    }
    let unit_start = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_start);
    let number = digits(number).map_err(|hint| hint.unwrap_or(Cow::Borrowed(SHAPE)))?;
    let Some((_, unit)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(SHAPE.into());
    };
    match number.saturating_mul(*unit) {
        0 => Err("the smallest is 1B".into()),
        bytes if bytes > MAX_EXACT => Err(format!("the largest is {MAX_EXACT}B").into()),
        bytes => Ok(bytes),
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size such as 64MiB.",
            "type": "string",
            "pattern": "^[1-9][0-9_]*([KMGT]iB|[kMGT]?B)$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_their_units() {
        for (text, expected) in
            [("1B", 1), ("2KiB", 2048), ("256MiB", 268_435_456), ("1_000kB", 1_000_000)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "64", "64M", "64mb", "64 MiB", "0MiB", "-1MiB", "1.5GiB", "9999999TiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
