//! The status of limits after a charge. Only this module computes the remaining units, the reset
//! time and the retry time that clients receive.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::charge::Operation;
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::decide::decide;
use crate::limit::{Algorithm, Limit, Visibility};
use crate::reading::{Admission, Reading};
use crate::time::{Millis, Timestamp};

/// The status of one limit for a subject after a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// The limit that the status describes.
    pub limit: Arc<Limit>,
    /// The cost of the charge on this limit.
    pub cost: Cost,
    /// Whole units used. If the charge was admitted, they include its cost.
    pub used: u64,
    /// Whole units that remain: the capacity minus the used units, or zero if more than the
    /// capacity is used. If this limit refused the charge, this number is smaller than the cost.
    pub remaining: u64,
    /// If the same charge fits once more now, the time at which all used units are free again.
    /// Otherwise, the first time at which the same charge fits again.
    pub resets_at: Timestamp,
    /// The time at which all used units are free again if no other charge is made.
    pub full_reset_at: Timestamp,
    /// Whether the charge fits on this limit, regardless of the other limits. If the charge does
    /// not fit, the time at which it will fit.
    pub admission: Admission,
    /// Whole units of unsettled reservations; for a concurrency limit, all used units.
    pub reserved: u64,
}

impl LimitStatus {
    /// Computes the status of `limit` from `reading`.
    #[must_use]
    pub fn new(limit: Arc<Limit>, cost: Cost, reading: &Reading) -> Self {
        let Reading { used, full_reset_at, admission, .. } = *reading;
        let (resets_at, remaining, reserved) = derived(&limit, reading);
        Self { limit, cost, used, remaining, resets_at, full_reset_at, admission, reserved }
    }

    /// Updates this status for `cost` and `reading`. `reading` must be a reading of the same limit.
    #[inline]
    fn read(&mut self, cost: Cost, reading: &Reading) {
        (self.resets_at, self.remaining, self.reserved) = derived(&self.limit, reading);
        self.cost = cost;
        self.used = reading.used;
        self.full_reset_at = reading.full_reset_at;
        self.admission = reading.admission;
    }

    /// Returns the status after a refund of the cost. The status of a concurrency limit does not
    /// change: a request holds its permit until the request ends, even if its cost is refunded.
    #[must_use]
    pub fn refunded(self) -> Self {
        let units = self.cost.get();
        self.refunded_by(units)
    }

    /// Returns the status after a refund of `units`. Like [`refunded`](Self::refunded), the method
    /// returns the status of a concurrency limit unchanged.
    #[must_use]
    pub fn refunded_by(mut self, units: u64) -> Self {
        if matches!(self.limit.algorithm(), Algorithm::Concurrency(_)) {
            return self;
        }
        self.used = self.used.saturating_sub(units);
        self.remaining = self.limit.capacity().saturating_sub(self.used);
        self
    }

    /// Predicts the status after a charge that has only been checked. This status must be that of a
    /// peek whose cost fits. The result is the status as it would be after a charge of the same
    /// cost at the time `at`, if no other charge is made before `at`.
    ///
    /// For a fixed window, the result equals the status of the charge itself, unless all used units
    /// were refunded. For other limits without room for a second charge, `resets_at` is the time at
    /// which all units are free. If a predicted time is not exact, it is late and never early.
    #[must_use]
    pub fn charged(mut self, at: Timestamp) -> Self {
        if self.cost == Cost::PEEK {
            return self;
        }
        let operation = Operation::Charge { cost: self.cost, id: ChargeId::default() };
        let fresh = decide(None, &self.limit, operation, at).0.full_reset_at;
        // If nothing is used, the window is not open yet or was refunded completely.
        let is_over = self.used == 0 || self.resets_at <= at;
        let used_before = if is_over { 0 } else { self.used };
        let charged = |moment: Timestamp| match self.limit.algorithm() {
            _ if is_over => fresh,
            Algorithm::FixedWindow(_) => moment,
            // On a token bucket, the times to refill the tokens of successive charges add up.
            Algorithm::TokenBucket(_) => moment.after(fresh.since(at)),
            _ => moment.max(fresh),
        };
        (self.resets_at, self.full_reset_at) =
            (charged(self.resets_at), charged(self.full_reset_at));
        self.used = used_before.saturating_add(self.cost.get());
        self.remaining = self.limit.capacity().saturating_sub(self.used);
        self
    }

    /// Returns whether this limit refused the charge.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.admission != Admission::Now
    }

    /// Returns whether the status is reported to clients.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        self.limit.visibility() == Visibility::Visible
    }

    /// Returns whether this limit has fewer remaining units than `other`. If both have the same
    /// number, returns whether this limit has the smaller remaining share of its capacity.
    fn is_tighter_than(&self, other: &Self) -> bool {
        let share =
            |one: &Self, of: &Self| u128::from(one.remaining) * u128::from(of.limit.capacity());
        (self.remaining, share(self, other)) < (other.remaining, share(other, self))
    }
}

/// Returns the reset time, the remaining units and the reserved units that clients receive,
/// computed from a `reading` of `limit`.
#[inline]
fn derived(limit: &Limit, reading: &Reading) -> (Timestamp, u64, u64) {
    let resets_at = match reading.fits_again {
        Admission::At(ready_at) => ready_at,
        Admission::Now | Admission::Never => reading.full_reset_at,
    };
    let remaining = limit.capacity().saturating_sub(reading.used);
    let reserved = match limit.algorithm() {
        Algorithm::Concurrency(_) => reading.used,
        _ => reading.reserved,
    };
    (resets_at, remaining, reserved)
}

/// The result of a charge on any number of limits.
///
/// If every limit admits the charge, the charge is admitted and counts on every limit. Otherwise
/// the charge is refused. A refused charge counts on no limit, except on limits that count
/// refusals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The time of the decision.
    pub now: Timestamp,
    /// One status for each limit of the charge, in the order in which the limits were charged.
    pub statuses: Vec<LimitStatus>,
}

impl Evaluation {
    /// Creates the evaluation of a store call that failed. It contains no statuses.
    #[must_use]
    pub const fn without_statuses(now: Timestamp) -> Self {
        Self { now, statuses: Vec::new() }
    }

    /// Replaces the content of this evaluation by the evaluation of `charges` at `now`. An element
    /// of `charges` consists of a limit, the cost and the reading. The method reuses the memory of
    /// the statuses.
    pub fn replace<'a>(
        &mut self,
        now: Timestamp,
        charges: impl Iterator<Item = (&'a Arc<Limit>, Cost, &'a Reading)>,
    ) {
        self.now = now;
        let mut count = 0;
        for (limit, cost, reading) in charges {
            match self.statuses.get_mut(count) {
                Some(status) if Arc::ptr_eq(&status.limit, limit) => status.read(cost, reading),
                Some(status) => *status = LimitStatus::new(Arc::clone(limit), cost, reading),
                None => self.statuses.push(LimitStatus::new(Arc::clone(limit), cost, reading)),
            }
            count += 1;
        }
        self.statuses.truncate(count);
    }

    /// Returns whether every limit admits the charge.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.refusals().next().is_none()
    }

    /// Returns the statuses of the limits that refused the charge.
    pub fn refusals(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses.iter().filter(|status| status.is_refusal())
    }

    /// Returns whether the charge can never be admitted, however long the client waits, because the
    /// cost exceeds the capacity of a limit.
    #[must_use]
    pub fn never_fits(&self) -> bool {
        self.statuses.iter().any(|status| status.admission == Admission::Never)
    }

    /// Returns the time until every limit that refused admits the same charge, if no other charge
    /// is made. A retry that is only one millisecond earlier fails. Returns `None` if the charge
    /// was admitted or never fits.
    #[must_use]
    pub fn retry_after(&self) -> Option<Millis> {
        if self.never_fits() {
            return None;
        }
        let ready = self.statuses.iter().filter_map(|status| match status.admission {
            Admission::At(ready_at) => Some(ready_at.since(self.now)),
            Admission::Now | Admission::Never => None,
        });
        ready.max()
    }

    /// Returns the status to report if a client receives only one. If limits refused, the result is
    /// the status of the refusing limit with the longest wait. Otherwise, it is the status of the
    /// limit with the fewest remaining units. If several limits have the fewest remaining units,
    /// the limit with the smaller remaining share of its capacity is used. Hidden limits are
    /// skipped.
    ///
    /// Returns `None` if only hidden limits refused, because no other status explains the refusal.
    #[must_use]
    pub fn tightest(&self) -> Option<&LimitStatus> {
        if self.is_admitted() {
            return self.tightest_visible();
        }
        self.refusals().filter(|status| status.is_visible()).reduce(|longest, other| {
            if other.resets_at > longest.resets_at { other } else { longest }
        })
    }

    /// Returns the status of the visible limit with the fewest units remaining, whether or not the
    /// charge was admitted. Returns `None` if all limits are hidden.
    #[must_use]
    pub fn tightest_visible(&self) -> Option<&LimitStatus> {
        self.statuses.iter().filter(|status| status.is_visible()).reduce(|tightest, other| {
            if other.is_tighter_than(tightest) { other } else { tightest }
        })
    }

    /// Returns the evaluation with every status as it is after a refund of the charge.
    #[must_use]
    pub fn refunded(mut self) -> Self {
        self.statuses = self.statuses.into_iter().map(LimitStatus::refunded).collect();
        self
    }
}
