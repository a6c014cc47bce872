//! A store, a few limits, and the operations that the tests apply to them.

use tollgate::model::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate::model::{
    Admission, Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, KeyedHash, Limit,
    Millis, Operation, Reading, StoreError, Subject, Timestamp, Value,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;

/// The time at which every test starts.
pub(super) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Creates a store of at most `max_entries`, without a bound on bytes.
pub(super) fn store_of(max_entries: usize) -> Memory {
    Memory::new(Bounds { max_entries, max_bytes: usize::MAX })
}

/// Returns the time `millis` after [`START`].
pub(super) fn at(millis: u64) -> Timestamp {
    START.after(Millis::new(millis))
}

pub(super) fn fixed_window(quota: u64, window_ms: u64) -> Limit {
    let window = FixedWindow::new(quota, Millis::new(window_ms), Anchor::FirstRequest);
    Limit::new("fixed", Algorithm::FixedWindow(window.unwrap())).unwrap()
}

pub(super) fn sliding_window(quota: u64, window_ms: u64, precision_ms: u64) -> Limit {
    let window = SlidingWindow::new(quota, Millis::new(window_ms), Millis::new(precision_ms));
    Limit::new("sliding", Algorithm::SlidingWindow(window.unwrap())).unwrap()
}

pub(super) fn sliding_log(quota: u64, window_ms: u64) -> Limit {
    let log = SlidingLog::new(quota, Millis::new(window_ms));
    Limit::new("log", Algorithm::SlidingLog(log.unwrap())).unwrap()
}

pub(super) fn token_bucket(quota: u64, window_ms: u64, burst: u64) -> Limit {
    let bucket = TokenBucket::new(quota, Millis::new(window_ms), burst);
    Limit::new("bucket", Algorithm::TokenBucket(bucket.unwrap())).unwrap()
}

pub(super) fn two_bucket(quota: u64, window_ms: u64) -> Limit {
    let buckets = TwoBucket::new(quota, Millis::new(window_ms)).unwrap();
    Limit::new("two", Algorithm::TwoBucket(buckets)).unwrap()
}

pub(super) fn concurrency(quota: u64, lease_ms: u64) -> Limit {
    let limit = Concurrency::new(quota, Millis::new(lease_ms));
    Limit::new("concurrent", Algorithm::Concurrency(limit.unwrap())).unwrap()
}

struct NoSecrets;

impl KeyedHash for NoSecrets {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        let mut hash = [0; 16];
        for (index, byte) in bytes.iter().enumerate() {
            hash[index % 16] ^= byte.rotate_left(index as u32 / 16);
        }
        hash
    }
}

pub(super) fn subject(value: &str) -> Subject {
    Subject::new([("user", Value::Clear(value.as_bytes()))], &NoSecrets)
}

pub(super) fn take(cost: u64, id: u128) -> Operation {
    Operation::Charge { cost: Cost::new(cost).unwrap(), id: ChargeId(id) }
}

pub(super) fn refund(cost: u64, position: ChargePosition, id: u128) -> Operation {
    let deduplication = Deduplication::ById;
    Operation::Refund { cost: Cost::new(cost).unwrap(), position, id: ChargeId(id), deduplication }
}

/// Returns the reading of one operation for one subject.
pub(super) fn apply_one(
    store: &Memory,
    now: Timestamp,
    limit: &Limit,
    subject: &Subject,
    operation: Operation,
) -> Result<Reading, StoreError> {
    store.apply_now(now, &[Charge { limit, subject, operation }]).map(|readings| readings[0])
}

/// Charges one unit and returns whether it is admitted. The store must have room.
pub(super) fn is_admitted(store: &Memory, now: Timestamp, limit: &Limit, who: &str) -> bool {
    apply_one(store, now, limit, &subject(who), take(1, 0)).unwrap().admission == Admission::Now
}

/// Returns the units that `who` has used, by a peek.
pub(super) fn used(store: &Memory, now: Timestamp, limit: &Limit, who: &str) -> u64 {
    apply_one(store, now, limit, &subject(who), take(0, 0)).unwrap().used
}
