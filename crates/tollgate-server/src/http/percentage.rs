//! Percentages as JSON numbers.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use tollgate::model::Percent;

/// A percentage as a number, `30` or `0.1`, both in JSON and as text without the percent sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentage(pub Percent);

impl fmt::Display for Percentage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_string().trim_end_matches('%'))
    }
}

impl Serialize for Percentage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.whole() {
            Some(whole) => serializer.serialize_u8(whole),
            // For display only: decisions use the integer parts.
            None => serializer.serialize_f64(f64::from(self.0.parts()) / 100.0),
        }
    }
}

impl<'de> Deserialize<'de> for Percentage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The number is parsed from its digits, so no rounding affects the selection of clients.
        let number = Number::deserialize(deserializer)?.to_string();
        number.parse().map(Self).map_err(D::Error::custom)
    }
}

impl JsonSchema for Percentage {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Percentage".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 100, "multipleOf": 0.01 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_the_number_that_it_was() {
        for text in ["0", "0.01", "0.07", "0.1", "12.34", "30", "99.99", "100"] {
            let read: Percentage = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            assert_eq!(read.to_string(), text);
        }
        assert_eq!(serde_json::from_str::<Percentage>("30.0").unwrap().to_string(), "30");
        for text in ["-1", "100.01", "0.001", "1e3", "1e-9", "\"30\"", "null", "true"] {
            assert!(serde_json::from_str::<Percentage>(text).is_err(), "{text}");
        }
    }
}
