//! Errors in a document, with their location.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};
use tollgate_policy::suggest;

/// An error in a document, with its location.
#[derive(Debug)]
pub(in crate::http) struct Fault {
    pointer: String,
    message: String,
    kind: FaultKind,
}

/// The kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum FaultKind {
    /// The document is not valid JSON.
    Syntax,
    /// The document is valid JSON, but not of the expected form.
    Meaning,
}

impl Fault {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        Self { pointer: String::new(), message: error.to_string(), kind: FaultKind::Syntax }
    }

    /// Creates an error of the kind [`FaultKind::Meaning`] at `pointer` (RFC 6901).
    pub(in crate::http) fn at(pointer: impl Into<String>, message: impl fmt::Display) -> Self {
        let (pointer, message) = (pointer.into(), message.to_string());
        Self { pointer, message, kind: FaultKind::Meaning }
    }

    /// Prefixes the location with `segment`, the name of a member or the index of an element.
    pub(in crate::http) fn inside(mut self, segment: impl fmt::Display) -> Self {
        let segment = segment.to_string().replace('~', "~0").replace('/', "~1");
        self.pointer.insert_str(0, &segment);
        self.pointer.insert(0, '/');
        self
    }

    /// Returns the location as a JSON pointer (RFC 6901). An empty pointer means the whole
    /// document.
    pub(in crate::http) fn pointer(&self) -> &str {
        &self.pointer
    }

    pub(in crate::http) const fn kind(&self) -> FaultKind {
        self.kind
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::at("", message)
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("{unexpected} is not {expected}"))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("{unexpected} is not {expected}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        Self::custom(match suggest(field, expected.iter().copied()) {
            Some(near) => format!("unknown name {field:?}; did you mean {near:?}?"),
            None => format!("unknown name {field:?}; the names are {known}"),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("{field:?} is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::custom(format_args!("{field:?} is given twice"))
    }
}
