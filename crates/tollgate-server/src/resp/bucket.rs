//! Token buckets that the parameters of a command describe.

use std::fmt;
use std::sync::Arc;

use tollgate::model::algo::TokenBucket;
use tollgate::model::{Algorithm, Limit, LimitError, MAX_EXACT, Millis, Visibility};

/// The number of buckets that a connection caches. This number can be small, because clients use
/// few buckets with many keys.
const REMEMBERED: usize = 16;

/// The parameters of a bucket, as the command contains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketParams {
    /// The most tokens in the bucket.
    pub(super) burst: i64,
    /// Tokens that are added per period.
    pub(super) count: i64,
    /// The period in seconds.
    pub(super) period: i64,
}

impl BucketParams {
    /// Returns the limit with these parameters. The name of the limit consists of the rate and the
    /// burst, so buckets with different rates or bursts never share state. Parameters with the same
    /// rate and burst (5 in a minute, 10 in two minutes) describe the same bucket.
    ///
    /// # Errors
    /// [`BucketError`] with the parameter that is out of range.
    fn limit(self) -> Result<Limit, BucketError> {
        let positive = |what, number| match u64::try_from(number) {
            Ok(number @ 1..=MAX_EXACT) => Ok(number),
            _ => Err(BucketError::OutOfRange { what, number }),
        };
        let count = positive("count", self.count)?;
        let period = positive("period", self.period)?;
        let burst = positive("burst", self.burst)?;
        let window = period.checked_mul(1_000).ok_or(BucketError::TooLong(period))?;
        // Dividing the count and the period of this rate by their common divisor leaves the most
        // room for the burst.
        let divisor = greatest_common_divisor(count, window);
        let (quota, window) = (count / divisor, window / divisor);
        let bucket =
            TokenBucket::new(quota, Millis::new(window), burst).map_err(BucketError::Limit)?;
        let name = format!("bucket.{quota}.{window}.{burst}");
        let limit =
            Limit::new(&name, Algorithm::TokenBucket(bucket)).map_err(BucketError::Limit)?;
        Ok(limit.with_visibility(Visibility::Hidden))
    }
}

const fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// A cache of the limits for the buckets that a connection used last.
#[derive(Debug, Default)]
pub(super) struct BucketCache {
    /// The cache slots. The hash of a bucket's parameters selects its slot, so a newer bucket
    /// replaces an older bucket in the same slot.
    slots: Vec<Option<(BucketParams, Arc<Limit>)>>,
}

impl BucketCache {
    /// Returns the limit with these parameters, from the cache if possible.
    ///
    /// # Errors
    /// [`BucketError`] with the parameter that is out of range.
    pub(super) fn get(&mut self, numbers: BucketParams) -> Result<Arc<Limit>, BucketError> {
        let slot = slot(numbers);
        if let Some(Some((remembered, limit))) = self.slots.get(slot)
            && *remembered == numbers
        {
            return Ok(Arc::clone(limit));
        }
        let limit = Arc::new(numbers.limit()?);
        self.slots.resize(REMEMBERED, None);
        self.slots[slot] = Some((numbers, Arc::clone(&limit)));
        Ok(limit)
    }
}

const fn slot(BucketParams { burst, count, period }: BucketParams) -> usize {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (burst as u64).wrapping_mul(MULTIPLIER) ^ (count as u64).rotate_left(21);
    let mixed = (mixed ^ (period as u64).rotate_left(42)).wrapping_mul(MULTIPLIER);
    (mixed >> 32) as usize % REMEMBERED
}

/// The reason why parameters do not describe a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BucketError {
    /// A parameter is below 1, or above the largest number that every store counts exactly.
    OutOfRange {
        /// The name of the parameter.
        what: &'static str,
        /// The value of the parameter.
        number: i64,
    },
    /// The period, which is this number of seconds, is too long to be expressed in milliseconds.
    TooLong(u64),
    /// The parameters describe no valid limit, for this reason.
    Limit(LimitError),
}

impl fmt::Display for BucketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { what, number } => {
                write!(f, "the {what} must be from 1 to {MAX_EXACT}, not {number}")
            }
            Self::TooLong(period) => write!(f, "the period {period} is too long"),
            Self::Limit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BucketError {}

#[cfg(test)]
mod tests {
    use super::*;

    const fn numbers(burst: i64, count: i64, period: i64) -> BucketParams {
        BucketParams { burst, count, period }
    }

    #[test]
    fn one_rate_has_one_name_and_another_burst_another() {
        let name = |numbers: BucketParams| numbers.limit().unwrap().name().to_owned();
        assert_eq!(name(numbers(3, 5, 60)), "bucket.1.12000.3");
        assert_eq!(name(numbers(3, 5, 60)), name(numbers(3, 10, 120)));
        assert_ne!(name(numbers(3, 5, 60)), name(numbers(4, 5, 60)));
        assert_ne!(name(numbers(3, 5, 60)), name(numbers(3, 5, 61)));
        let longest = name(numbers(1, MAX_EXACT as i64, 315_360_000));
        assert!(longest.len() <= tollgate::model::limit::MAX_NAME, "{longest}");
    }

    #[test]
    fn the_smallest_numbers_of_a_rate_leave_room_for_large_bursts() {
        let limit = numbers(1_000_000_000, 1_000_000_000, 86_400).limit().unwrap();
        assert_eq!(limit.capacity(), 1_000_000_000);
        assert_eq!(limit.window(), Millis::new(86_400_000));
    }

    #[test]
    fn numbers_that_are_no_buckets_are_named() {
        let error = |numbers: BucketParams| numbers.limit().unwrap_err().to_string();
        let range = "must be from 1 to 9007199254740991, not";
        assert_eq!(error(numbers(0, 1, 1)), format!("the burst {range} 0"));
        assert_eq!(error(numbers(1, -1, 1)), format!("the count {range} -1"));
        assert_eq!(error(numbers(1, 1, i64::MAX)), format!("the period {range} {}", i64::MAX));
        assert!(error(numbers(1, 1, 9_000_000_000_000_000)).contains("too large"));
        assert!(error(numbers(1 << 50, 1, 1)).starts_with("the burst 1125899906842624 is too"));
    }

    #[test]
    fn a_connection_remembers_a_bounded_number_of_buckets() {
        let mut buckets = BucketCache::default();
        for burst in 1..1_000 {
            let limit = buckets.get(numbers(burst, 5, 60)).unwrap();
            assert_eq!(limit.capacity(), burst as u64);
            assert!(Arc::ptr_eq(&limit, &buckets.get(numbers(burst, 5, 60)).unwrap()));
        }
        assert_eq!(buckets.slots.len(), REMEMBERED);
        assert!(buckets.get(numbers(0, 5, 60)).is_err());
    }
}
