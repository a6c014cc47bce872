//! Limits whose subjects stand in the store's keys in clear.

use crate::read::{Flag, Given};
use crate::report::Report;
use crate::written::PolicyFile;

/// Their names, in the order of the file.
pub(super) fn names(file: &PolicyFile) -> Vec<Box<str>> {
    revealed(file).map(|(name, _)| name.into()).collect()
}

/// Warns of each: memory has no keys that anybody looks at.
pub(super) fn warn_in_memory(file: &PolicyFile, report: &mut Report<'_>) {
    for (_, reveal) in revealed(file) {
        let hint = "it speaks of the keys of a store in `redis` or `memcached`";
        report.warning(reveal.key, "`reveal` does nothing for a store in memory", hint);
    }
}

fn revealed(file: &PolicyFile) -> impl Iterator<Item = (&str, &Given<Flag>)> {
    let limits = file.limits.value().map_or(&[][..], |limits| &limits.0);
    limits.iter().filter_map(|named| {
        let reveal = named.value.as_ref()?.reveal.given()?;
        reveal.value.0.then_some((&*named.name.value, reveal))
    })
}
