//! The target that header profiles write into: a response's header fields, or another collection of
//! fields.

use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::Limit;

use super::list::{push_policy, separate};

/// A target of header profiles: a response's header fields, or a document that describes a
/// response.
pub trait Fields {
    /// Sets the field `name`, which is in lower case, to `value` only.
    fn set(&mut self, name: &'static str, value: FieldValue);

    /// Adds `value` to the list in the field `name`, which is in lower case.
    fn add(&mut self, name: &'static str, value: FieldValue);

    /// Adds the list of `limits`, each with its name, its quota and its window, as
    /// `ratelimit-policy` has them.
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

    /// Sets a field like [`set`](Self::set), to the text that `write` appends.
    fn set_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let mut text = String::new();
        write(&mut text);
        self.set(name, FieldValue::Text(text));
    }

    /// Adds a field like [`add`](Self::add), with the text that `write` appends.
    fn add_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let mut text = String::new();
        write(&mut text);
        self.add(name, FieldValue::Text(text));
    }
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
        // The names of limits contain only characters that are valid in header values.
        FieldValue::Text(text) => HeaderValue::try_from(text).ok(),
    }
}
