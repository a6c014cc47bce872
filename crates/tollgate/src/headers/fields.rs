//! Where profiles write: the head of an answer, or whatever else holds fields.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// What profiles write into: the head of an answer, or a document that tells of one.
pub trait Fields {
    /// Makes `value` the only one of the field `name`, which is in lower case.
    fn set(&mut self, name: &'static str, value: FieldValue);

    /// Adds `value` to the list in the field `name`, which is in lower case.
    fn add(&mut self, name: &'static str, value: FieldValue);
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// Whole units or seconds.
    Number(u64),
    /// Names of limits and numbers: visible ASCII and spaces.
    Text(String),
}

impl Fields for HeaderMap {
    fn set(&mut self, name: &'static str, value: FieldValue) {
        if let Some(value) = header_value(value) {
            self.insert(HeaderName::from_static(name), value);
        }
    }

    fn add(&mut self, name: &'static str, value: FieldValue) {
        if let Some(value) = header_value(value) {
            self.append(HeaderName::from_static(name), value);
        }
    }
}

fn header_value(value: FieldValue) -> Option<HeaderValue> {
    match value {
        FieldValue::Number(number) => Some(HeaderValue::from(number)),
        // What names of limits are made of always is a header value.
        FieldValue::Text(text) => HeaderValue::try_from(text).ok(),
    }
}
