//! The shard of a subject by weighted rendezvous hashing, in integers.
//!
//! Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates" (1998), with
//! the logarithmic weights of Schindelhauer and Schomaker, "Weighted distributed hash tables"
//! (2005).
//!
//! For every subject, each shard draws a number `u` between 0 and 1 from a hash of the subject and
//! the shard. The score of the shard is `-log2(u) / weight`, which this module calls the wait of
//! the shard. The shard with the shortest wait owns the subject. The waits are exponentially
//! distributed, and the probability that a shard has the shortest wait is exactly its weight
//! divided by the sum of all weights. A shard's wait depends only on the subject, the shard's name
//! and the shard's weight. If a shard is added, subjects move only to this shard, and if a shard is
//! removed, only its own subjects move.
//!
//! The logarithm is a fixed-point number of 32 binary digits, from a table of 256 intervals with
//! linear interpolation. The error is at most 3 millionths, the result is the same on every
//! machine, and the wait never rises when the draw rises. Waits are compared by cross-multiplying.

use std::cmp::Ordering;

/// The name and weight of a shard, which select its subjects.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightedShard {
    /// A keyed hash of the shard's name.
    pub(super) name: [u64; 2],
    /// The weight of the shard, from 1 to [`super::sharded::MAX_WEIGHT`].
    pub(super) weight: u32,
}

/// Returns the index of the shard that owns the subject with this keyed hash.
pub(super) fn owner(shards: &[WeightedShard], subject: [u64; 2]) -> usize {
    let mut best = 0;
    let mut shortest: Option<Score> = None;
    for (index, shard) in shards.iter().enumerate() {
        let wait = Score::new(shard, subject);
        if shortest.as_ref().is_none_or(|shortest| wait.is_better_than(shortest)) {
            best = index;
            shortest = Some(wait);
        }
    }
    best
}

/// The wait of a shard for a subject: the shard with the shortest wait owns the subject.
struct Score<'a> {
    shard: &'a WeightedShard,
    draw: u64,
}

impl<'a> Score<'a> {
    fn new(shard: &'a WeightedShard, subject: [u64; 2]) -> Self {
        let draw =
            mixed(mixed(subject[0] ^ shard.name[0]) ^ subject[1].wrapping_add(shard.name[1]));
        Self { shard, draw }
    }

    fn is_better_than(&self, other: &Self) -> bool {
        let order = if self.shard.weight == other.shard.weight {
            Ordering::Equal
        } else {
            // Each product is below 2^39 × 2^20.
            let own = minus_log2(self.draw) * u64::from(other.shard.weight);
            own.cmp(&(minus_log2(other.draw) * u64::from(self.shard.weight)))
        };
        // With equal weights, the larger draw has the shorter wait. If the draws are equal too, the
        // names decide, so the order in which shards are listed does not matter.
        let by_draw = || other.draw.cmp(&self.draw);
        order.then_with(by_draw).then_with(|| self.shard.name.cmp(&other.shard.name)).is_lt()
    }
}

/// A permutation of all 64-bit numbers in which a change of any bit of the input changes about half
/// of the output's bits.
///
/// Source: Stafford's thirteenth variant of the MurmurHash3 finalizer, as SplitMix64 uses it.
const fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The number of binary digits after the point of a logarithm.
const DIGITS: u32 = 32;

/// The base-2 logarithm of the number of intervals of the table: the table has `1 << STEP_BITS`
/// intervals.
const STEP_BITS: u32 = 8;

/// `log2(1 + index / 256)` for each index from 0 to 256. The last value is one.
static LOG2: [u64; (1 << STEP_BITS) + 1] = log2_table();

/// Returns `-log2(draw / 2^64)` in units of 2^-32. The result is at least one of these units, and
/// at most the number 64. A draw of zero counts as one.
fn minus_log2(draw: u64) -> u64 {
    let draw = draw.max(1);
    let whole = u64::from(draw.ilog2());
    let mantissa = draw << draw.leading_zeros() << 1;
    let step = (mantissa >> (u64::BITS - STEP_BITS)) as usize;
    let within = mantissa << STEP_BITS >> DIGITS;
    let rise = LOG2[step + 1] - LOG2[step];
    let fraction = LOG2[step] + ((rise * within) >> DIGITS);
    (64 << DIGITS) - ((whole << DIGITS) + fraction)
}

const fn log2_table() -> [u64; (1 << STEP_BITS) + 1] {
    let mut table = [1 << DIGITS; (1 << STEP_BITS) + 1];
    let mut step = 0;
    while step < 1 << STEP_BITS {
        table[step] = log2(((1 << STEP_BITS) + step as u64) << (u64::BITS - 1 - STEP_BITS));
        step += 1;
    }
    table
}

/// Returns the logarithm of a number between 1 and 2 that has 63 binary digits after the point.
/// Squaring a number doubles its logarithm. If the square exceeds 2, the next digit of the
/// logarithm is a one.
const fn log2(mut number: u64) -> u64 {
    let mut digits = 0;
    let mut count = 0;
    while count < DIGITS {
        let square = (number as u128 * number as u128) >> 63;
        let passes_two = square >> 64;
        number = (square >> passes_two) as u64;
        digits = digits << 1 | passes_two as u64;
        count += 1;
    }
    digits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNIT: u64 = 1 << DIGITS;

    #[test]
    fn powers_of_two_have_whole_logarithms() {
        for power in 0..64 {
            assert_eq!(minus_log2(1 << power), (64 - power) * UNIT);
        }
        assert_eq!(minus_log2(0), 64 * UNIT);
        assert_eq!(minus_log2(u64::MAX), 1);
    }

    proptest! {
        #[test]
        fn a_logarithm_is_close_and_falls_as_the_draw_rises(draw: u64, shift in 0..64_u32) {
            let draw = (draw >> shift).max(1);
            let exact = 64.0 - (draw as f64).log2();
            let error = minus_log2(draw) as f64 / UNIT as f64 - exact;
            prop_assert!(error.abs() < 3e-6, "{error}");
            prop_assert!(minus_log2(draw) >= minus_log2(draw.saturating_add(1)));
        }

        #[test]
        fn the_order_of_the_list_decides_nothing(
            names in prop::collection::hash_map(any::<[u64; 2]>(), 1..1_000_u32, 1..12),
            subject: [u64; 2],
            turn: prop::sample::Index,
        ) {
            let mut shards: Vec<_> =
                names.into_iter().map(|(name, weight)| WeightedShard { name, weight }).collect();
            let before = shards[owner(&shards, subject)].name;
            let turn = turn.index(shards.len());
            shards.rotate_left(turn);
            prop_assert_eq!(shards[owner(&shards, subject)].name, before);
        }

        #[test]
        fn a_shard_that_leaves_moves_only_its_own(
            names in prop::collection::hash_map(any::<[u64; 2]>(), 1..1_000_u32, 2..12),
            subject: [u64; 2],
            leaving: prop::sample::Index,
        ) {
            let mut shards: Vec<_> =
                names.into_iter().map(|(name, weight)| WeightedShard { name, weight }).collect();
            let before = shards[owner(&shards, subject)].name;
            let left = shards.remove(leaving.index(shards.len()));
            if left.name != before {
                prop_assert_eq!(shards[owner(&shards, subject)].name, before);
            }
        }
    }
}
