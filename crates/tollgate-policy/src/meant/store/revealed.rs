//! Limits whose subjects people may read: in the store's keys, and at the administration's door.

use crate::written::PolicyFile;

/// Their names, in the order of the file.
pub(in crate::meant) fn names(file: &PolicyFile) -> Vec<Box<str>> {
    let limits = file.limits.value().map_or(&[][..], |limits| &limits.0);
    let revealed = limits.iter().filter_map(|named| {
        let reveal = named.value.as_ref()?.reveal.given()?;
        reveal.value.0.then(|| (&*named.name.value).into())
    });
    revealed.collect()
}
