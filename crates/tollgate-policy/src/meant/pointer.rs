//! Where in a JSON document a value is to be found.

use tollgate_core::policy::JsonPointer;

use crate::read::{Given, Text, quoted};
use crate::report::Report;

/// A JSON pointer that can be followed.
pub(super) fn pointer(given: &Given<Text>, report: &mut Report<'_>) -> Option<JsonPointer> {
    let text = &given.value.0;
    let told = |error| {
        report.mistake(given.at, format_args!("{} is no JSON pointer", quoted(text)), error);
    };
    JsonPointer::parse(text).map_err(told).ok()
}
