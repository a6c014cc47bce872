//! Header fields in a document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Serialize, SerializeMap, Serializer};
use smallvec::SmallVec;
use tollgate::headers::{FieldValue, Fields};

/// The header fields of a policy's profiles. There are at most a dozen fields, and two in most
/// responses, so a list is faster to search than a map.
#[derive(Debug, Default)]
pub(in crate::http) struct HeaderFields(SmallVec<[(&'static str, FieldValue); 4]>);

impl HeaderFields {
    fn of(&mut self, name: &str) -> Option<&mut FieldValue> {
        self.0.iter_mut().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl Fields for HeaderFields {
    fn set(&mut self, name: &'static str, value: FieldValue) {
        match self.of(name) {
            Some(known) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// Adds `value` to the field called `name`. Several values of one field form a list, separated
    /// by commas.
    fn add(&mut self, name: &'static str, value: FieldValue) {
        match self.of(name) {
            Some(known) => {
                let list = format!("{}, {}", text(known), text(&value));
                *known = FieldValue::Text(list);
            }
            None => self.0.push((name, value)),
        }
    }
}

impl Serialize for HeaderFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            match value {
                FieldValue::Number(number) => {
                    object.serialize_entry(name, itoa::Buffer::new().format(*number))?;
                }
                FieldValue::Text(text) => object.serialize_entry(name, text)?,
            }
        }
        object.end()
    }
}

impl JsonSchema for HeaderFields {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "HeaderFields".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, String>::json_schema(generator)
    }
}

fn text(value: &FieldValue) -> Cow<'_, str> {
    match value {
        FieldValue::Number(number) => number.to_string().into(),
        FieldValue::Text(text) => text.into(),
    }
}
