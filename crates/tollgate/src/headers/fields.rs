//! The target that header profiles write into: a response's header fields, or another collection of
//! fields.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::{Evaluation, LimitStatus};

use super::field_value::FieldValue;
use super::{github, ietf};

/// A target into which header profiles write: a response's header fields, or another collection of
/// fields, such as a document that describes a response.
pub trait Fields {
    /// Sets the field `name` to `value`, and removes the field's other values. `name` is in lower
    /// case.
    fn set(&mut self, name: &'static str, value: FieldValue);

    /// Adds `value` to the list in the field `name`. `name` is in lower case.
    fn add(&mut self, name: &'static str, value: FieldValue);

    /// Sets the fields of the profile `github` from `status`. The fields of the used and the
    /// remaining units are omitted unless `with_usage`.
    ///
    /// The default implementation [sets](Self::set) each field.
    fn set_github(&mut self, status: &LimitStatus, with_usage: bool) {
        github::each(status, with_usage, |name, value| self.set(name, value));
    }

    /// Adds the lists of the profile `ietf`, which contain every visible limit of `evaluation`.
    ///
    /// The default implementation [adds](Self::add) each list.
    fn add_ietf(&mut self, evaluation: &Evaluation) {
        ietf::each(evaluation, |name, list| self.add(name, FieldValue::Text(list)));
    }
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
