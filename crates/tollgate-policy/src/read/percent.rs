//! Percentages.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::number::digits;
use super::{Read, unexpected_but};
use crate::report::Report;
use crate::tree::Node;

/// A whole percentage such as `10%`, in hundredths, 0 … 100.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percent(pub(crate) u8);

impl Read for Percent {
    const WHAT: &'static str = "a percentage such as 10%";

    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match hundredths(node.text().unwrap_or_default()) {
            Ok(percent) => Some(Self(percent)),
            Err(hint) => {
                unexpected_but(node, Self::WHAT, &hint, report);
                None
            }
        }
    }
}

fn hundredths(text: &str) -> Result<u8, Cow<'static, str>> {
    const SHAPE: &str = "a whole number from 0% to 100%";
    let Some(number) = text.strip_suffix('%') else {
        let is_number = digits(text).is_ok_and(|number| number <= 100);
        return Err(if is_number { format!("{text}%").into() } else { SHAPE.into() });
    };
    let number = digits(number).ok().and_then(|number| u8::try_from(number).ok());
    number.filter(|number| *number <= 100).ok_or_else(|| SHAPE.into())
}

impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole percentage such as 10%.",
            "type": "string",
            "pattern": "^(100|[1-9]?[0-9])%$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_hundredths_are_read_with_their_sign() {
        for (text, expected) in [("0%", 0), ("7%", 7), ("100%", 100)] {
            assert_eq!(hundredths(text), Ok(expected), "{text}");
        }
        for text in ["", "%", "10", "101%", "256%", "-1%", "1.5%", "01%", "ten%"] {
            assert!(hundredths(text).is_err(), "{text}");
        }
        assert_eq!(hundredths("10").unwrap_err(), "10%");
    }
}
