//! Converts the key `memory` to the bounds of the memory store.

use crate::decode::{Integer, Spanned};
use crate::raw::Memory;
use crate::report::Report;
use crate::settings::MemoryBounds;

/// Returns the bounds of the memory store, or `None` after reporting a mistake.
pub(super) fn bounds(raw: &Memory, report: &mut Report<'_>) -> Option<MemoryBounds> {
    let mut bounds = MemoryBounds::default();
    if let Some(entries) = raw.max_entries.given() {
        bounds.max_entries = at_least_one(entries, report)?;
    }
    if let Some(bytes) = raw.max_bytes.value() {
        bounds.max_bytes = bytes.0;
    }
    Some(bounds)
}

fn at_least_one(given: &Spanned<Integer>, report: &mut Report<'_>) -> Option<u64> {
    if given.value.0 == 0 {
        report.plain_error(given.at, "must be at least 1");
        return None;
    }
    Some(given.value.0)
}
