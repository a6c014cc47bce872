//! The charges that the fallback admitted and that the main store has not counted.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tollgate_core::algo::Anchor;
use tollgate_core::{
    Admission, Algorithm, Charge, Limit, Operation, Readings, Refusals, Subject, Timestamp,
};

/// The maximum number of entries. There is one entry for each limit and subject with units that the
/// fallback admitted and for which the store was not charged yet. The entries take about three
/// megabytes, and up to three times as much if the quotas of the subjects differ.
pub const MAX_LOCAL_CHARGES: usize = 16_384;

/// The most entries of other subjects that one call charges when the store answers again.
pub(super) const CHARGED_BY_ONE_CALL: usize = 128;

/// The time in milliseconds from a failed attempt to charge the entries of other subjects to the
/// next attempt.
const RETRY_AFTER: u64 = 20;

/// The time between two searches of a full table for expired entries, in milliseconds.
const SWEEP_PERIOD: u64 = 1_000;

/// The units that the fallback admitted while the store did not answer, by the outcome of their
/// charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalChargeCounts {
    /// The number of units that were charged to the store when it answered again.
    pub charged: u64,
    /// The number of units that were not charged to the store because the limit was used up. These
    /// units were admitted beyond the limit.
    pub exceeded: u64,
    /// The number of units in charges with an unknown outcome. These units are not charged again.
    pub unknown: u64,
    /// The number of units that were not recorded, because the table had [`MAX_LOCAL_CHARGES`]
    /// entries.
    pub dropped: u64,
}

impl Sum for LocalChargeCounts {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |all, one| Self {
            charged: all.charged.saturating_add(one.charged),
            exceeded: all.exceeded.saturating_add(one.exceeded),
            unknown: all.unknown.saturating_add(one.unknown),
            dropped: all.dropped.saturating_add(one.dropped),
        })
    }
}

/// Units that the fallback admitted on one limit for one subject.
#[derive(Debug)]
pub(super) struct LocalCharge {
    pub(super) limit: Arc<Limit>,
    pub(super) subject: Subject,
    pub(super) units: Units,
}

/// The table of the units for which the store was not charged yet. The table is ordered by limit
/// and subject, so two runs with the same calls charge the store in the same order.
#[derive(Debug, Default)]
pub(super) struct LocalCharges {
    limits: Mutex<Limits>,
    entries: AtomicUsize,
    is_passing: AtomicBool,
    next_pass: AtomicU64,
    charged: AtomicU64,
    exceeded: AtomicU64,
    unknown: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Limits {
    by_counters: BTreeMap<Counters, OfLimit>,
    /// The time before which a full table is not searched for expired entries again.
    next_sweep: u64,
    /// The number of entries that were put back because the store did not accept their charge. The
    /// next pass takes the first entries of the table, up to this number, last, so these entries do
    /// not prevent the charges of other entries.
    put_back: usize,
}

#[derive(Debug)]
struct OfLimit {
    /// The definition of the newest entry. Entries with this definition share it.
    newest: Arc<Limit>,
    /// The entries of each subject, ordered by burst. There is more than one only for a token bucket
    /// that a subject used with different bursts: units that still count under a larger burst do not
    /// count under a smaller one.
    subjects: BTreeMap<Subject, Vec<Entry>>,
}

/// The units of one subject, and the limit with which the store is charged for these units. Subjects
/// can have different quotas, such as those of plans.
#[derive(Debug)]
struct Entry {
    limit: Arc<Limit>,
    units: Units,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Units {
    /// The units of the next charge.
    pub(super) next: u64,
    /// The units that did not fit the limit at the last attempt. They are given up when the store
    /// has counted `next`. Until then, they are part of what the node admitted: a refund reduces
    /// them first.
    pub(super) excess: u64,
    /// The end of the window, or the time at which all of the units are free again. After this
    /// time, the store is not charged for these units any more.
    expires_at: Timestamp,
}

impl Units {
    /// Removes units until at most `units` are left, and those of `excess` first.
    pub(super) fn keep(&mut self, units: u64) {
        self.next = self.next.min(units);
        self.excess = self.excess.min(units - self.next);
    }

    pub(super) const fn total(&self) -> u64 {
        self.next.saturating_add(self.excess)
    }

    fn add(&mut self, other: Self) {
        self.next = self.next.saturating_add(other.next);
        self.excess = self.excess.saturating_add(other.excess);
        self.expires_at = self.expires_at.max(other.expires_at);
    }
}

/// The right to charge entries of subjects that are not in the current call. Only one call at a
/// time has this right.
pub(super) struct Pass<'a>(&'a AtomicBool);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl LocalCharges {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    pub(super) fn counts(&self) -> LocalChargeCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LocalChargeCounts {
            charged: count(&self.charged),
            exceeded: count(&self.exceeded),
            unknown: count(&self.unknown),
            dropped: count(&self.dropped),
        }
    }

    /// Records the charges of a call that the fallback answered with `readings` and that the store
    /// did not execute.
    pub(super) fn record(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        let is_charge = |charge: &Charge<'_>| charge.operation.as_charge().is_some();
        let both = || charges.iter().zip(readings.iter());
        let admitted = both()
            .all(|(charge, reading)| !is_charge(charge) || reading.admission == Admission::Now);
        for (charge, reading) in both() {
            let Some((cost, _)) = charge.operation.as_charge() else { continue };
            let is_counted = admitted || charge.limit.refusals() == Refusals::Counted;
            let is_open = now < reading.full_reset_at && is_window(charge.limit);
            if is_counted && is_open && cost.get() > 0 {
                let expires_at = reading.full_reset_at;
                let units = Units { next: cost.get(), excess: 0, expires_at };
                self.add(now, charge.limit, charge.subject, units);
            }
        }
    }

    /// Changes the recorded units by the units that refunds and settlements at the fallback
    /// returned or charged.
    pub(super) fn correct(&self, charges: &[Charge<'_>], readings: &Readings) {
        if self.is_empty() {
            return;
        }
        for (charge, reading) in charges.iter().zip(readings.iter()) {
            let is_end =
                matches!(charge.operation, Operation::Refund { .. } | Operation::Settle { .. });
            if !is_end || !is_window(charge.limit) {
                continue;
            }
            let mut limits = self.limits.lock();
            let counters = counters(charge.limit);
            let Some(of_limit) = limits.by_counters.get_mut(&counters) else { continue };
            // Units that were charged to the store already remain charged.
            let Some(entries) = of_limit.subjects.get_mut(charge.subject) else { continue };
            // The burst can have changed since the charge.
            let own = entries.iter().position(|entry| burst(&entry.limit) == burst(charge.limit));
            if let Some(Entry { units, .. }) = entries.get_mut(own.unwrap_or(0)) {
                units.next = units.next.saturating_add(reading.added);
                units.keep(units.total().saturating_sub(reading.refunded));
            }
        }
    }

    fn add(&self, now: Timestamp, limit: &Limit, subject: &Subject, units: Units) {
        let mut limits = self.limits.lock();
        if self.entries.load(Ordering::Relaxed) >= MAX_LOCAL_CHARGES {
            self.sweep(now, &mut limits);
        }
        let OfLimit { newest, subjects } =
            limits.by_counters.entry(counters(limit)).or_insert_with(|| OfLimit {
                newest: Arc::new(limit.clone()),
                subjects: BTreeMap::new(),
            });
        let mut shared = || {
            if **newest != *limit {
                *newest = Arc::new(limit.clone());
            }
            Arc::clone(newest)
        };
        let known = subjects.get_mut(subject);
        let is_own = |entry: &&mut Entry| burst(&entry.limit) == burst(limit);
        if let Some(known) = known.and_then(|entries| entries.iter_mut().find(is_own)) {
            known.units.add(units);
            // A larger quota has room for more of the units.
            if *known.limit != *limit && known.limit.capacity() <= limit.capacity() {
                known.limit = shared();
            }
        } else if self.entries.load(Ordering::Relaxed) < MAX_LOCAL_CHARGES {
            let entries = subjects.entry(subject.clone()).or_default();
            entries.push(Entry { limit: shared(), units });
            entries.sort_by_key(|entry| burst(&entry.limit));
            self.entries.fetch_add(1, Ordering::Relaxed);
        } else {
            self.dropped.fetch_add(units.total(), Ordering::Relaxed);
        }
    }

    /// Removes expired entries, at most once in [`SWEEP_PERIOD`].
    fn sweep(&self, now: Timestamp, limits: &mut Limits) {
        if is_ahead(now, limits.next_sweep, SWEEP_PERIOD) {
            return;
        }
        limits.next_sweep = now.as_millis().saturating_add(SWEEP_PERIOD);
        limits.by_counters.retain(|_, of_limit| {
            of_limit.subjects.retain(|_, entries| {
                entries.retain(|entry| now < entry.units.expires_at);
                !entries.is_empty()
            });
            !of_limit.subjects.is_empty()
        });
        let left = limits.by_counters.values().flat_map(|of_limit| of_limit.subjects.values());
        self.entries.store(left.map(Vec::len).sum(), Ordering::Relaxed);
    }

    /// Removes and returns the entries of the limits and subjects of `charges`.
    pub(super) fn take_of(&self, now: Timestamp, charges: &[Charge<'_>]) -> Vec<LocalCharge> {
        let mut limits = self.limits.lock();
        let mut taken = Vec::new();
        for charge in charges {
            let counters = counters(charge.limit);
            let Some(of_limit) = limits.by_counters.get_mut(&counters) else { continue };
            self.take(of_limit, charge.subject, &mut taken);
            if of_limit.subjects.is_empty() {
                limits.by_counters.remove(&counters);
            }
        }
        taken.retain(|charge| now < charge.units.expires_at);
        taken
    }

    /// Removes and returns up to [`CHARGED_BY_ONE_CALL`] entries.
    pub(super) fn take_some(&self, now: Timestamp) -> Vec<LocalCharge> {
        let mut limits = self.limits.lock();
        // Entries of a shard that stays down are taken last, so these entries do not prevent the
        // charges of other entries.
        let entries = self.entries.load(Ordering::Relaxed);
        limits.put_back = if limits.put_back < entries { limits.put_back } else { 0 };
        let mut taken = Vec::new();
        for skipped in [limits.put_back, 0] {
            self.take_after(&mut limits, skipped, &mut taken);
        }
        limits.by_counters.retain(|_, of_limit| !of_limit.subjects.is_empty());
        taken.retain(|charge| now < charge.units.expires_at);
        taken
    }

    /// Moves the entries of `subject` to `taken`.
    fn take(&self, of_limit: &mut OfLimit, subject: &Subject, taken: &mut Vec<LocalCharge>) {
        let Some((subject, entries)) = of_limit.subjects.remove_entry(subject) else { return };
        self.entries.fetch_sub(entries.len(), Ordering::Relaxed);
        let local = |entry| LocalCharge::new(subject.clone(), entry);
        taken.extend(entries.into_iter().map(local));
    }

    /// Moves the entries of subjects to `taken` until `taken` has [`CHARGED_BY_ONE_CALL`] entries.
    /// Skips the first `skipped` subjects.
    fn take_after(&self, limits: &mut Limits, mut skipped: usize, taken: &mut Vec<LocalCharge>) {
        for of_limit in limits.by_counters.values_mut() {
            let left = CHARGED_BY_ONE_CALL.saturating_sub(taken.len());
            let subjects = of_limit.subjects.keys().skip(skipped).take(left);
            let some: Vec<_> = subjects.cloned().collect();
            skipped = skipped.saturating_sub(of_limit.subjects.len());
            some.iter().for_each(|subject| self.take(of_limit, subject, taken));
        }
    }

    /// Returns the right to charge the entries of other subjects. Returns `None` if another call
    /// has this right, or if an attempt failed less than `RETRY_AFTER` ago.
    pub(super) fn pass(&self, now: Timestamp) -> Option<Pass<'_>> {
        let next_pass = self.next_pass.load(Ordering::Relaxed);
        if self.is_empty() || is_ahead(now, next_pass, RETRY_AFTER) {
            return None;
        }
        (!self.is_passing.swap(true, Ordering::Acquire)).then(|| Pass(&self.is_passing))
    }

    /// Puts back the entry `charge`, which the store did not accept. After that, no entries of other
    /// subjects are charged for `RETRY_AFTER`.
    pub(super) fn put_back(&self, now: Timestamp, charge: &LocalCharge) {
        let LocalCharge { limit, subject, units } = charge;
        self.next_pass.store(now.as_millis().saturating_add(RETRY_AFTER), Ordering::Relaxed);
        if units.total() > 0 {
            self.limits.lock().put_back += 1;
            self.add(now, limit, subject, *units);
        }
    }

    pub(super) fn note_charged(&self, units: u64) {
        self.charged.fetch_add(units, Ordering::Relaxed);
    }

    pub(super) fn note_exceeded(&self, units: u64) {
        self.exceeded.fetch_add(units, Ordering::Relaxed);
    }

    pub(super) fn note_unknown(&self, units: u64) {
        self.unknown.fetch_add(units, Ordering::Relaxed);
    }
}

impl LocalCharge {
    fn new(subject: Subject, Entry { limit, units }: Entry) -> Self {
        Self { limit, subject, units }
    }
}

/// Returns whether the time `next`, at most `period` after the time at which it was set, is still
/// to come. If it is further ahead, the clock was set back since, and the wait ends.
fn is_ahead(now: Timestamp, next: u64, period: u64) -> bool {
    (1..=period).contains(&next.saturating_sub(now.as_millis()))
}

/// The identity of a limit's counters, and the name of the limit's schedule. The schedule is part
/// of the identity because the windows of a limit can depend on the subject, and the later charge
/// opens the window of its own subject.
type Counters = (u128, &'static str);

fn counters(limit: &Limit) -> Counters {
    let schedule = match limit.algorithm() {
        Algorithm::FixedWindow(window) => match window.anchor() {
            Anchor::Scheduled(schedule) => schedule.name(),
            Anchor::FirstRequest | Anchor::Calendar => "",
        },
        _ => "",
    };
    (limit.state_digest(), schedule)
}

/// Returns the burst of a token bucket, or 0 for other algorithms.
const fn burst(limit: &Limit) -> u64 {
    match limit.algorithm() {
        Algorithm::TokenBucket(_) => limit.capacity(),
        _ => 0,
    }
}

/// Returns whether charges use up units of the limit. A concurrency limit grants permits instead. A
/// permit is returned at the store that granted the permit.
const fn is_window(limit: &Limit) -> bool {
    !matches!(limit.algorithm(), Algorithm::Concurrency(_))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use tollgate_conformance::schedule::{EARLIER_UNEVEN_SECONDS, UNEVEN_SECONDS};
    use tollgate_core::algo::{FixedWindow, Schedule};
    use tollgate_core::key::Value;
    use tollgate_core::{KeyedHash, Millis};

    use super::*;

    struct Zero;

    impl KeyedHash for Zero {
        fn hash(&self, _: &[u8]) -> [u8; 16] {
            [0; 16]
        }
    }

    /// The bug: a full table was searched once in a second of the decision time. If the clock was
    /// set back by some seconds, expired entries filled the table for these seconds.
    #[test]
    fn a_clock_that_was_set_back_delayed_the_search_for_expired_entries() {
        let limit = FixedWindow::new(3, Millis::from_secs(60), Anchor::Calendar).unwrap();
        let limit = Limit::new("limit", Algorithm::FixedWindow(limit)).unwrap();
        let charges = LocalCharges::default();
        let add = |now, numbers: Range<usize>| {
            let now = Timestamp::from_millis(now);
            let units = Units { next: 1, excess: 0, expires_at: now.after(Millis::new(1)) };
            for number in numbers {
                let value = Value::Clear(&number.to_be_bytes());
                charges.add(now, &limit, &Subject::new([("user", value)], &Zero), units);
            }
        };
        add(20_000, 0..MAX_LOCAL_CHARGES);
        add(20_001, 0..1);
        // The clock is set back.
        add(10_000, 1..MAX_LOCAL_CHARGES);
        add(10_001, MAX_LOCAL_CHARGES..2 * MAX_LOCAL_CHARGES - 1);
        assert_eq!(charges.counts().dropped, 0);
    }

    #[test]
    fn the_charges_of_subjects_with_other_windows_keep_their_windows() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let window = FixedWindow::scheduled(3, UNEVEN_SECONDS).unwrap();
        let limit = Limit::new("month", Algorithm::FixedWindow(window)).unwrap();
        let schedules: [(&str, Schedule); 3] =
            [("ann", UNEVEN_SECONDS), ("bob", EARLIER_UNEVEN_SECONDS), ("eve", UNEVEN_SECONDS)];
        let charges = LocalCharges::default();
        let subject = |name: &str| Subject::new([("user", Value::Clear(name.as_bytes()))], &Zero);
        for (name, schedule) in schedules {
            let limit = limit.with_schedule(schedule).unwrap();
            let units = Units { next: 1, excess: 0, expires_at: now.after(Millis::from_secs(60)) };
            charges.add(now, &limit, &subject(name), units);
        }
        let taken = charges.take_some(now);
        assert_eq!(taken.len(), schedules.len());
        for (name, schedule) in schedules {
            let charge = taken.iter().find(|charge| charge.subject == subject(name)).unwrap();
            assert_eq!(*charge.limit, limit.with_schedule(schedule).unwrap(), "{name}");
        }
        assert!(charges.is_empty());
    }
}
