//! The bounds of a memory store from the policy file.

use tollgate::store::memory::Bounds;
use tollgate_policy::MemoryBounds;

/// Returns the bounds of a memory store. If a bound is larger than this machine can address, the
/// store is not bounded by it.
#[must_use]
pub fn memory_bounds(memory: MemoryBounds) -> Bounds {
    let admission = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Bounds { max_entries: admission(memory.max_entries), max_bytes: admission(memory.max_bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_a_policy_may_have_fits_the_store_that_it_names() {
        for max_bytes in [0, 1, 31, 32, 4_096, 64 << 20, u64::MAX] {
            let memory = MemoryBounds { max_bytes, ..MemoryBounds::default() };
            let fits = memory_bounds(memory).largest_state() as u64;
            assert_eq!(memory.largest_state(), fits, "{max_bytes}");
        }
    }
}
