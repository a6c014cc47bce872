//! Limits whose subjects people may read: in the store's keys, and at the administration's listener.

use crate::raw::PolicyFile;

/// Their names, in the order of the file.
pub(in crate::resolve) fn names(file: &PolicyFile) -> Vec<Box<str>> {
    let limits = file.limits.value().map_or(&[][..], |limits| &limits.0);
    let revealed = limits.iter().filter_map(|named| {
        let reveal = named.value.as_ref()?.reveal.given()?;
        reveal.value.0.then(|| (&*named.name.value).into())
    });
    revealed.collect()
}
