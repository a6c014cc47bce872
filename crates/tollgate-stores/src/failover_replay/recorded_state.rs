//! One recorded state of a limit and a subject, and its conversion to a cell.

use tollgate_core::algo::{
    TokenBucket, concurrency, fixed_window, sliding_log, sliding_window, token_bucket, two_bucket,
};
use tollgate_core::{Algorithm, Cell, ChargeId, Limit, Subject, Timestamp};

use crate::bounded_cache::EvictionPriority;

/// The longest encoding of a subject that is recorded. All entries have the same size.
pub const MAX_SUBJECT_BYTES: usize = 80;

/// The state of a limit and subject from one reading, or from this node's own charges.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedState {
    /// The digest of the limit's name and generation.
    pub(super) limit: u128,
    /// The hash of the limit's numbers, which the conversion to a cell uses.
    pub(super) numbers: u32,
    pub(super) subject: Name,
    pub(super) recorded_at: Timestamp,
    /// The time from which the entry is obsolete.
    pub(super) expires_at: Timestamp,
    /// The value of the log's `turn` when the recorded state was last lowered. Readings of calls
    /// that started before that may report the higher state, so they are not recorded.
    pub(super) lowered: u64,
    /// The number of used units.
    pub(super) used: u64,
    /// For a fixed window or a permit, its end. For a token bucket, the time at which the bucket is
    /// full. For any other algorithm, the [`ChargePosition`](tollgate_core::ChargePosition) of the
    /// units.
    pub(super) position: u64,
    pub(super) detail: Detail,
}

/// The part of a recorded state that depends on the algorithm of the limit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Detail {
    /// The units are this node's own charges at one position.
    Own,
    /// The units are a permit of this charge.
    Permit(ChargeId),
    /// The units come from readings, each of which contains the whole usage.
    Readings(RecentReadings),
}

/// The readings from which an entry has its usage.
///
/// The usage of a reading can be lower than that of an earlier one, because another node refunded
/// units or reset the subject. The order in which the store executed two calls is known only if one
/// of them began after the answer to the other was recorded. The entry therefore has the largest of
/// the readings that can be the latest one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentReadings {
    /// The value of the log's `turn` at the record of a reading. A call that starts later is later
    /// than all readings that were recorded until then, and its reading replaces them.
    pub(super) since: u64,
    /// The largest position and usage of the readings that were recorded after `since`. Zero if
    /// there is none.
    pub(super) later: (u64, u64),
}

/// The encoding of a subject, stored inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    length: u8,
    bytes: [u8; MAX_SUBJECT_BYTES],
}

impl RecordedState {
    /// Returns the cell that contains only this state.
    pub(super) fn cell(&self, limit: &Limit) -> Cell {
        let Self { used, position, recorded_at, .. } = *self;
        match limit.algorithm() {
            Algorithm::FixedWindow(_) => {
                let resets_at = Timestamp::from_millis(position);
                Cell::FixedWindow(fixed_window::State { used, resets_at })
            }
            Algorithm::TokenBucket(bucket) => {
                Cell::TokenBucket(full_at(bucket, position, recorded_at))
            }
            Algorithm::SlidingWindow(_) => {
                let blocks = vec![sliding_window::Block { number: position, used }];
                Cell::SlidingWindow(sliding_window::State { blocks })
            }
            Algorithm::TwoBucket(_) => {
                Cell::TwoBucket(two_bucket::State { bucket: position, previous: 0, current: used })
            }
            Algorithm::SlidingLog(_) => {
                let entries =
                    vec![sliding_log::Entry { at: Timestamp::from_millis(position), used }];
                Cell::SlidingLog(sliding_log::State { entries })
            }
            Algorithm::Concurrency(_) => {
                let expires_at = Timestamp::from_millis(position);
                let id = match self.detail {
                    Detail::Permit(id) => id,
                    Detail::Own | Detail::Readings(_) => ChargeId::default(),
                };
                let leases = vec![concurrency::Permit { id, used, expires_at }];
                Cell::Concurrency(concurrency::State { permits: leases })
            }
        }
    }

    /// Returns this state after the reading `new`. `turn` is the value of the log's `turn` at the
    /// record of the reading. `follows` returns whether the store executed the call of the reading
    /// after it executed all calls whose answers were recorded until the given turn.
    pub(super) fn after_reading(
        self,
        new: Self,
        turn: u64,
        follows: impl FnOnce(u64) -> bool,
    ) -> Self {
        let Detail::Readings(RecentReadings { since, later }) = self.detail else { return new };
        let reading = (new.position, new.used);
        let (largest, readings) = if follows(since) {
            (later, RecentReadings { since: turn, later: (0, 0) })
        } else {
            let later = later.max(reading);
            ((self.position, self.used), RecentReadings { since, later })
        };
        let detail = Detail::Readings(readings);
        if largest <= reading {
            return Self { lowered: self.lowered, detail, ..new };
        }
        let (position, used) = largest;
        let recorded_at = self.recorded_at.max(new.recorded_at);
        let expires_at = if largest == (self.position, self.used) {
            self.expires_at
        } else {
            // The position of a window or a bucket is the time at which its units are free again.
            Timestamp::from_millis(position)
        };
        Self { position, used, recorded_at, expires_at, detail, ..self }
    }
}

impl EvictionPriority for RecordedState {
    /// Evicts obsolete entries first, and then the oldest entries.
    fn eviction_priority(&self, now: Timestamp) -> u64 {
        if now >= self.expires_at { 0 } else { self.recorded_at.as_millis() }
    }
}

impl Name {
    /// Returns the encoding of `subject`, or `None` if the encoding is too long.
    pub(super) fn of(subject: &Subject) -> Option<Self> {
        let encoding = subject.as_bytes();
        let mut bytes = [0; MAX_SUBJECT_BYTES];
        bytes.get_mut(..encoding.len())?.copy_from_slice(encoding);
        Some(Self { length: u8::try_from(encoding.len()).ok()?, bytes })
    }

    /// Returns the subject of this encoding, or `None` if the encoding is invalid.
    pub(super) fn subject(&self) -> Option<Subject> {
        Subject::from_bytes(self.bytes.get(..usize::from(self.length))?)
    }
}

/// Returns a state of a bucket that will be full at `moment` if it is not charged. The state is as of
/// `recorded_at`, so a bucket with another quota refills only from that time on. If the bucket was
/// empty at a later time, because the node's clock was behind, the state is as of that later time.
fn full_at(bucket: &TokenBucket, moment: u64, recorded_at: Timestamp) -> token_bucket::State {
    let full = bucket.burst() * bucket.window().get();
    let outstanding = moment.saturating_sub(recorded_at.as_millis());
    let before = outstanding.min(full / bucket.quota());
    token_bucket::State {
        level: full - before * bucket.quota(),
        at: Timestamp::from_millis(moment - before),
    }
}
