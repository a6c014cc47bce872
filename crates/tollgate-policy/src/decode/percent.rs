//! The value type for percentages.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Decode, unexpected_but};
use crate::report::Report;
use crate::tree::Node;

/// A percentage such as `10%` or `0.1%`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percent(pub(crate) tollgate_core::Percent);

impl Decode for Percent {
    const EXPECTED: &'static str = "a percentage such as 10%";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match percent(node.text().unwrap_or_default()) {
            Ok(percent) => Some(Self(percent)),
            Err(hint) => {
                unexpected_but(node, Self::EXPECTED, &hint, report);
                None
            }
        }
    }
}

fn percent(text: &str) -> Result<tollgate_core::Percent, Cow<'static, str>> {
    const SHAPE: &str = "from 0% to 100%, with at most two decimal places";
    let is_padded = text.starts_with('0') && !text.starts_with("0.") && !matches!(text, "0" | "0%");
    match text.parse() {
        Ok(percent) if text.ends_with('%') && !is_padded => Ok(percent),
        Ok(percent) => Err(percent.to_string().into()),
        Err(_) => Err(SHAPE.into()),
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A percentage such as 10%, with at most two decimal places: 0.1%.",
            "type": "string",
            "pattern": r"^(100(\.00?)?|[1-9]?[0-9](\.[0-9][0-9]?)?)%$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_with_their_sign() {
        for (text, expected) in
            [("0%", 0), ("7%", 700), ("0.1%", 10), ("0.05%", 5), ("100%", 10_000)]
        {
            assert_eq!(percent(text).map(tollgate_core::Percent::parts), Ok(expected), "{text}");
        }
        for text in ["", "%", "10", "101%", "256%", "-1%", "1.555%", "01%", "00.1%", "ten%", "1/2%"]
        {
            assert!(percent(text).is_err(), "{text}");
        }
        assert_eq!(percent("10").unwrap_err(), "10%");
        assert_eq!(percent("0.5").unwrap_err(), "0.5%");
        assert_eq!(percent("01%").unwrap_err(), "1%");
    }
}
