//! Converts the key `traces` to the settings of tracing.

use std::path::PathBuf;

use crate::decode::{Field, Spanned, Text, quoted};
use crate::raw::PolicyFile;
use crate::report::Report;
use crate::settings::{DEFAULT_SAMPLE, TracesSettings};

/// Returns the tracing settings, or `Some(None)` if the file has no key `traces`. Returns `None`
/// after reporting a mistake.
pub(super) fn traces(file: &PolicyFile, report: &mut Report<'_>) -> Option<Option<TracesSettings>> {
    let traces = match &file.traces {
        Field::Absent => return Some(None),
        Field::Invalid => return None,
        Field::Value(given) => &given.value,
    };
    let endpoint = match &traces.endpoint {
        Field::Absent => Some(None),
        Field::Invalid => None,
        Field::Value(given) => endpoint(given, report).map(Some),
    };
    let sample = match &traces.sample {
        Field::Absent => Some(DEFAULT_SAMPLE),
        Field::Invalid => None,
        Field::Value(given) => Some(given.value.0),
    };
    let parents = match &traces.parents {
        Field::Absent => Some(Default::default()),
        Field::Invalid => None,
        Field::Value(given) => Some(given.value.0),
    };
    let authorities = match &traces.ca {
        Field::Absent => Some(None),
        Field::Invalid => None,
        Field::Value(given) => Some(Some(PathBuf::from(&*given.value.0))),
    };
    Some(Some(TracesSettings {
        endpoint: endpoint?,
        authorities: authorities?,
        sample: sample?,
        parents: parents?,
    }))
}

fn endpoint(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let text = &*given.value.0;
    let host = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let host = host.unwrap_or_default();
    let is_complete = !host.is_empty() && !host.starts_with('/');
    if is_complete && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@".contains(&byte)) {
        return Some(text.into());
    }
    let message = format_args!("{} is not a collector's URL", quoted(text));
    report.error(given.at, message, "expected one such as http://127.0.0.1:4318");
    None
}
