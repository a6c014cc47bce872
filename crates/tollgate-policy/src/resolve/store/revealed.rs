//! Collects the limits with `reveal: true`. The subjects of these limits are readable in the
//! store's keys and at the admin listener.

use crate::raw::PolicyFile;

/// Returns the names of the limits with `reveal: true`, in file order.
pub(in crate::resolve) fn names(file: &PolicyFile) -> Vec<Box<str>> {
    let limits = file.limits.value().map_or(&[][..], |limits| &limits.0);
    let revealed = limits.iter().filter_map(|named| {
        let reveal = named.value.as_ref()?.reveal.given()?;
        reveal.value.0.then(|| (&*named.name.value).into())
    });
    revealed.collect()
}
