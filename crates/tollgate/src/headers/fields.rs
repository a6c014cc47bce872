//! The target that header profiles write into: a response's header fields, or another collection of
//! fields.

use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::Limit;

use super::list::{push_policy, separate};

/// A target into which header profiles write: a response's header fields, or another collection of
/// fields, such as a document that describes a response.
pub trait Fields {
    /// Sets the field `name` to `value`, and removes the field's other values. `name` is in lower
    /// case.
    fn set(&mut self, name: &'static str, value: FieldValue);

    /// Adds `value` to the list in the field `name`. `name` is in lower case.
    fn add(&mut self, name: &'static str, value: FieldValue);

    /// Adds each of `limits` to the list in the field `name`. An item of the list has the name, the
    /// quota and the window of one limit, in the format of `ratelimit-policy`. `name` is in lower
    /// case.
    fn add_policies<'l>(
        &mut self,
        name: &'static str,
        limits: impl Iterator<Item = &'l Arc<Limit>>,
    ) {
        self.add_text(name, |text| {
            let start = text.len();
            for limit in limits {
                separate(text, start);
                push_policy(text, limit);
            }
        });
    }

    /// Sets a field, like [`set`](Self::set), to the text that `write` appends to an empty string.
    fn set_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let mut text = String::new();
        write(&mut text);
        self.set(name, FieldValue::Text(text));
    }

    /// Adds to a field, like [`add`](Self::add), the text that `write` appends to an empty string.
    fn add_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let mut text = String::new();
        write(&mut text);
        self.add(name, FieldValue::Text(text));
    }
}

/// The value of a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// A number of whole units or seconds.
    Number(u64),
    /// A text of limit names and numbers, in visible ASCII characters and spaces.
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
        // The names of limits contain only characters that are valid in header values.
        FieldValue::Text(text) => HeaderValue::try_from(text).ok(),
    }
}
