//! Random numbers for delays and names. No decision depends on these numbers.

use std::hash::{BuildHasher, RandomState};

/// Returns a random number. In a simulation, returns the next number of the sequence that the seed
/// of the simulation determines.
pub(crate) fn random() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(number) = tollgate_link::simulation::draw() {
        return number;
    }
    RandomState::new().hash_one(0_u8)
}
