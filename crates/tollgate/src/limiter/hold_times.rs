//! The mean time for which requests hold their permits. The limiter suggests this time as the wait
//! to a client that found no free permit.
//!
//! A concurrency limit has no reset: a permit becomes free when a request ends, and the time of
//! that end cannot be computed. The store returns the time at which a permit expires. That time is
//! a minute away, although most permits become free within a second.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Admission, Evaluation, Limit, Millis, Timestamp};

use crate::receipt::{Receipt, has_permits};

/// The most concurrency limits with recorded hold times. If two limits share an entry of the table,
/// the limit that was recorded last replaces the other.
const SLOTS: usize = 64;

/// The shortest suggested wait, and the wait that is suggested if the hold times of a limit are
/// unknown.
const MIN_WAIT: Millis = Millis::from_secs(1);

/// The weight of the moving mean: each observed hold time moves the mean by 1/`WEIGHT` of the
/// difference between the hold time and the mean.
const WEIGHT: u64 = 8;

/// The mean hold time of permits, for each concurrency limit.
///
/// The entries of the table are updated without a lock. A lost update changes only an estimate.
#[derive(Debug)]
pub(crate) struct HoldTimes(Box<[Slot]>);

#[derive(Debug, Default)]
struct Slot {
    /// The digest of the limit's name, or 0 if the table entry is empty.
    limit: AtomicU64,
    mean_millis: AtomicU64,
}

impl Default for HoldTimes {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| Slot::default()).collect())
    }
}

impl HoldTimes {
    /// Records how long the permits of `receipt` were held, from their charge until their release
    /// at `now`.
    pub(crate) fn released(&self, receipt: &Receipt, now: Timestamp) {
        let Some(charged_at) = receipt.charged_at() else { return };
        for (limit, _) in receipt.permits() {
            self.held(limit, now.since(charged_at));
        }
    }

    /// Records that a permit of `limit` was held for `time`.
    pub(crate) fn held(&self, limit: &Limit, time: Millis) {
        let (slot, digest) = self.slot(limit);
        let mean = slot.mean_millis.load(Ordering::Relaxed);
        let is_known = slot.limit.swap(digest, Ordering::Relaxed) == digest;
        let mean = match is_known {
            true => (mean * (WEIGHT - 1)).saturating_add(time.get()) / WEIGHT,
            false => time.get(),
        };
        slot.mean_millis.store(mean, Ordering::Relaxed);
    }

    /// Suggests a wait to the client for each concurrency limit that refused: the limit's mean hold
    /// time, at least 1 s. The suggested wait never ends later than the permits expire.
    pub(crate) fn suggest_waits(&self, evaluation: &mut Evaluation) {
        let now = evaluation.now;
        for status in &mut evaluation.statuses {
            if let Some(retry_at) = self.retry_at(&status.limit, status.admission, now) {
                status.admission = Admission::At(retry_at);
                status.resets_at = retry_at;
            }
        }
    }

    /// Returns the time at which a client should retry after `limit` refused it at `now`. The wait
    /// is the mean hold time of the limit, at least 1 s, and never ends after the time in
    /// `admission`, at which a permit expires. The returned time replaces the time in `admission`.
    /// Returns `None` unless `limit` is a concurrency limit that refused.
    pub(crate) fn retry_at(
        &self,
        limit: &Limit,
        admission: Admission,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let Admission::At(permits_end) = admission else { return None };
        has_permits(limit).then(|| now.after(self.wait(limit)).min(permits_end))
    }

    fn wait(&self, limit: &Limit) -> Millis {
        let (slot, digest) = self.slot(limit);
        if slot.limit.load(Ordering::Relaxed) != digest {
            return MIN_WAIT;
        }
        Millis::new(slot.mean_millis.load(Ordering::Relaxed)).max(MIN_WAIT)
    }

    fn slot(&self, limit: &Limit) -> (&Slot, u64) {
        let digest = (limit.name_digest() as u64).max(1);
        (&self.0[(digest % SLOTS as u64) as usize], digest)
    }
}
