//! The store in memory.

use crate::read::{Given, Whole};
use crate::report::Report;
use crate::settings::MemoryBounds;
use crate::written::Memory;

/// How much it may hold; `None` if something is wrong, which is reported.
pub(super) fn bounds(written: &Memory, report: &mut Report<'_>) -> Option<MemoryBounds> {
    let mut bounds = MemoryBounds::default();
    if let Some(entries) = written.max_entries.given() {
        bounds.max_entries = at_least_one(entries, report)?;
    }
    if let Some(bytes) = written.max_bytes.value() {
        bounds.max_bytes = bytes.0;
    }
    Some(bounds)
}

fn at_least_one(given: &Given<Whole>, report: &mut Report<'_>) -> Option<u64> {
    if given.value.0 == 0 {
        report.plain_mistake(given.at, "it must be at least 1");
        return None;
    }
    Some(given.value.0)
}
