//! Random numbers for delays and names. No decision depends on them.

use std::hash::{BuildHasher, RandomState};

/// Returns a random number; in a simulation, the next one of its seed.
pub(crate) fn random() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(number) = tollgate_link::simulation::draw() {
        return number;
    }
    RandomState::new().hash_one(0_u8)
}
