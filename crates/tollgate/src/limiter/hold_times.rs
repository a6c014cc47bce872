//! How long requests hold their permits, to suggest a wait to a client that found none free.
//!
//! A concurrency limit has no reset: a permit is free when a request ends, and that time cannot be
//! computed. The store returns the time at which a permit expires, which is a minute away although
//! most permits are free within a second.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Admission, Algorithm, Evaluation, Limit, Millis, Timestamp};

use crate::receipt::Receipt;

/// The number of concurrency limits with observed hold times. Two limits with the same slot replace
/// each other.
const SLOTS: usize = 64;

/// The shortest suggested wait, and the one without an observation.
const MIN_WAIT: Millis = Millis::from_secs(1);

/// An observation moves the mean by one `WEIGHT`th of the difference between both.
const WEIGHT: u64 = 8;

/// The mean hold time of permits, for each concurrency limit.
///
/// The slots are updated without a lock: an update that is lost changes an estimate only.
#[derive(Debug)]
pub(crate) struct HoldTimes(Box<[Slot]>);

#[derive(Debug, Default)]
struct Slot {
    /// The digest of the limit's name. 0: empty.
    limit: AtomicU64,
    mean_millis: AtomicU64,
}

impl Default for HoldTimes {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| Slot::default()).collect())
    }
}

impl HoldTimes {
    /// Records that the permits of `receipt` were released at `now`.
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

    /// Replaces the wait of concurrency limits that refused by their mean hold time, at least 1 s,
    /// and never later than the permits end.
    pub(crate) fn suggest_waits(&self, evaluation: &mut Evaluation) {
        let now = evaluation.now;
        for status in &mut evaluation.statuses {
            if let Some(retry_at) = self.retry_at(&status.limit, status.admission, now) {
                status.admission = Admission::At(retry_at);
                status.resets_at = retry_at;
            }
        }
    }

    /// Returns the time that replaces the one of `admission`, if `limit` is a concurrency limit that
    /// refused.
    pub(crate) fn retry_at(
        &self,
        limit: &Limit,
        admission: Admission,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let Admission::At(permits_end) = admission else { return None };
        let is_concurrency = matches!(limit.algorithm(), Algorithm::Concurrency(_));
        is_concurrency.then(|| now.after(self.wait(limit)).min(permits_end))
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
