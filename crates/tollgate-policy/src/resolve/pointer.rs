//! Where in a JSON document a value is to be found.

use tollgate_core::policy::JsonPointer;

use crate::decode::{Spanned, Text, quoted};
use crate::report::Report;

/// A JSON pointer that can be followed.
pub(super) fn pointer(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<JsonPointer> {
    let text = &given.value.0;
    let message = |error| {
        report.error(given.at, format_args!("{} is no JSON pointer", quoted(text)), error);
    };
    JsonPointer::parse(text).map_err(message).ok()
}
