//! A small random number generator with a seed. The same seed produces the same trace, on every
//! machine and in every version.

use std::ops::RangeInclusive;

/// A random number generator with a seed.
///
/// Source: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the generator for `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number in `range`. The computation makes some numbers slightly more frequent,
    /// which does not matter for tests.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let size = (range.end() - range.start()).saturating_add(1);
        range.start() + self.bits() % size
    }

    /// Returns one of `choices`, which must not be empty.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.within(0..=choices.len() as u64 - 1) as usize]
    }

    /// Returns true with a probability of `percent` %.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.within(1..=100) <= percent
    }
}
