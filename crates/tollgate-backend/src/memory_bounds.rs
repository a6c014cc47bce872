//! How much a store in memory may hold, as its policy file says.

use tollgate::store::memory::Bounds;
use tollgate_policy::MemoryBounds;

/// The bounds of a store in memory; a number beyond what this machine can address is no bound.
#[must_use]
pub fn memory_bounds(memory: MemoryBounds) -> Bounds {
    let admission = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Bounds { max_entries: admission(memory.max_entries), max_bytes: admission(memory.max_bytes) }
}
