//! Converts texts of a policy file to JSON pointers.

use tollgate_core::policy::JsonPointer;

use crate::decode::{Spanned, Text, quoted};
use crate::report::Report;

/// Parses a JSON pointer. Returns `None` after reporting a mistake.
pub(super) fn pointer(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<JsonPointer> {
    let text = &given.value.0;
    let message = |error| {
        report.error(given.at, format_args!("{} is not a JSON pointer", quoted(text)), error);
    };
    JsonPointer::parse(text).map_err(message).ok()
}
