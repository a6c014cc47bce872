//! The reference model for one limit and one subject.

use tollgate_core::{
    Admission, Algorithm, ChargeId, ChargePosition, Cost, Limit, OnExpiry, Reading, Refusals,
    StoredState, Timestamp,
};

use super::account::Account;
use super::concurrency::Concurrency;
use super::fixed_window::FixedWindow;
use super::holds::{Hold, Holds};
use super::sliding_log::SlidingLog;
use super::sliding_window::SlidingWindow;
use super::token_bucket::TokenBucket;
use super::two_bucket::TwoBucket;

/// All charges of one subject on one limit.
#[derive(Debug)]
pub struct Ledger {
    limit: Limit,
    account: Box<dyn Account>,
    holds: Holds,
}

impl Ledger {
    /// Creates a ledger without charges.
    #[must_use]
    pub fn new(limit: &Limit) -> Self {
        let skew = limit.skew_max().get();
        let account: Box<dyn Account> = match limit.algorithm() {
            Algorithm::FixedWindow(of) => Box::new(FixedWindow::new(of, skew)),
            Algorithm::SlidingWindow(of) => Box::new(SlidingWindow::new(of, skew)),
            Algorithm::TwoBucket(of) => Box::new(TwoBucket::new(of, skew)),
            Algorithm::SlidingLog(of) => Box::new(SlidingLog::new(of, skew)),
            Algorithm::TokenBucket(of) => Box::new(TokenBucket::new(of, skew)),
            Algorithm::Concurrency(of) => Box::new(Concurrency::new(of, skew)),
        };
        Self { limit: limit.clone(), account, holds: Holds::default() }
    }

    /// Decides further operations by `limit`, which has the same counters as the limit of this
    /// ledger and can have another quota.
    pub fn follow(&mut self, limit: &Limit) {
        self.limit = limit.clone();
        self.account.follow(limit.algorithm());
    }

    /// Returns the status at `now`, and the decision on a further charge of `cost`.
    #[must_use]
    pub fn status(&self, now: Timestamp, cost: Cost) -> Reading {
        self.status_for(now, cost, Purpose::Charge)
    }

    /// Returns the status at `now`, and the decision on a further reservation of `cost`.
    #[must_use]
    pub fn standing_of_reservation(&self, now: Timestamp, cost: Cost) -> Reading {
        self.status_for(now, cost, Purpose::Hold)
    }

    fn status_for(&self, now: Timestamp, cost: Cost, purpose: Purpose) -> Reading {
        let moment = now.as_millis();
        let released = self.released(moment);
        let current = released.as_ref().unwrap_or(self);
        let used = current.account.used(moment, moment);
        let admission = current.admission(moment, cost, purpose);
        let (found, held) = if current.account.is_impossible(moment) {
            (StoredState::Discarded, 0)
        } else if used > 0 {
            (StoredState::Present, current.holds.units())
        } else {
            (StoredState::Missing, current.holds.units())
        };
        Reading {
            admission,
            fits_again: admission,
            used,
            full_reset_at: Timestamp::from_millis(current.account.full_reset_at(moment)),
            position: ChargePosition(current.account.position(moment)),
            refunded: 0,
            added: 0,
            reserved: held,
            found,
        }
    }

    /// Counts a charge of an admitted call. All limits of the call must have admitted the call.
    pub fn admit(&mut self, now: Timestamp, cost: Cost, id: ChargeId) -> Reading {
        let before = self.status(now, cost);
        self.count(now, cost, id, Outcome::Admitted);
        Reading { admission: Admission::Now, found: before.found, ..self.status(now, cost) }
    }

    /// Counts a reservation of an admitted call. All limits of the call must have admitted the
    /// call.
    pub fn reserve(
        &mut self,
        now: Timestamp,
        cost: Cost,
        id: ChargeId,
        until: Timestamp,
    ) -> Reading {
        let before = self.standing_of_reservation(now, cost);
        self.count(now, cost, id, Outcome::Admitted);
        if cost != Cost::PEEK {
            let terms = self.limit.reservation_terms();
            let until = until.as_millis().min(now.as_millis() + terms.max.get());
            let (units, on_expiry) = (cost.get(), terms.on_expiry);
            self.holds.add(Hold { id, units, until, on_expiry });
        }
        Reading {
            admission: Admission::Now,
            found: before.found,
            ..self.standing_of_reservation(now, cost)
        }
    }

    /// Returns the answer to a charge of a refused call, and counts the charge if this limit counts
    /// refusals.
    pub fn refuse(&mut self, now: Timestamp, cost: Cost, id: ChargeId) -> Reading {
        self.refuse_for(now, cost, id, Purpose::Charge)
    }

    /// Returns the answer to a reservation of a refused call. Counts the reservation like
    /// [`refuse`](Self::refuse) counts a charge.
    pub fn refuse_reservation(&mut self, now: Timestamp, cost: Cost, id: ChargeId) -> Reading {
        self.refuse_for(now, cost, id, Purpose::Hold)
    }

    fn refuse_for(
        &mut self,
        now: Timestamp,
        cost: Cost,
        id: ChargeId,
        purpose: Purpose,
    ) -> Reading {
        let before = self.status_for(now, cost, purpose);
        if self.limit.refusals() == Refusals::Free {
            return before;
        }
        self.count(now, cost, id, Outcome::Refused);
        let after = self.status_for(now, cost, purpose);
        let admission =
            if before.admission == Admission::Now { Admission::Now } else { after.admission };
        Reading { admission, found: before.found, ..after }
    }

    /// Refunds the charge `id`.
    pub fn refund(&mut self, now: Timestamp, id: ChargeId) -> Reading {
        let before = self.status(now, Cost::PEEK);
        let mut current = self.as_of(now.as_millis());
        let refunded = match before.found {
            StoredState::Discarded => 0,
            StoredState::Missing | StoredState::Present => {
                current.account.refund(now.as_millis(), id, u64::MAX)
            }
        };
        if refunded > 0 {
            *self = current;
        }
        Reading { refunded, found: before.found, ..self.status(now, Cost::PEEK) }
    }

    /// Extends a permit. The renewal is admitted if the permit was held.
    pub fn renew(&mut self, now: Timestamp, id: ChargeId) -> Reading {
        let renewed = self.account.renew(now.as_millis(), id);
        let admission = if renewed { Admission::Now } else { Admission::Never };
        Reading { admission, ..self.status(now, Cost::PEEK) }
    }

    /// Extends a reservation. The extension is admitted if the reservation was open.
    pub fn extend(&mut self, now: Timestamp, id: ChargeId, until: Timestamp) -> Reading {
        let status = self.status(now, Cost::PEEK);
        let mut current = self.as_of(now.as_millis());
        let Some(mut hold) =
            current.holds.take(id).filter(|_| status.found != StoredState::Discarded)
        else {
            return Reading { admission: Admission::Never, ..status };
        };
        let until =
            until.as_millis().min(now.as_millis() + self.limit.reservation_terms().max.get());
        if until > hold.until {
            hold.until = until;
            current.holds.add(hold);
            *self = current;
        }
        Reading { admission: Admission::Now, ..self.status(now, Cost::PEEK) }
    }

    /// Replaces the reserved units by `cost`. The settlement is admitted if the reservation was
    /// open.
    pub fn settle(&mut self, now: Timestamp, id: ChargeId, cost: Cost) -> Reading {
        let before = self.status(now, Cost::PEEK);
        let moment = now.as_millis();
        let mut current = self.as_of(moment);
        let Some(hold) = current.holds.take(id).filter(|_| before.found != StoredState::Discarded)
        else {
            return Reading { admission: Admission::Never, ..before };
        };
        let (mut refunded, mut added) = (0, 0);
        if cost.get() < hold.units {
            refunded = current.account.refund(moment, id, hold.units - cost.get());
        } else {
            let most = self.limit.capacity() + self.limit.reservation_terms().overdraft;
            added = (cost.get() - hold.units).min(most.saturating_sub(before.used));
            current.count(now, Cost::up_to(added), id, Outcome::Admitted);
        }
        *self = current;
        let after = self.status(now, Cost::PEEK);
        Reading { admission: Admission::Now, refunded, added, found: before.found, ..after }
    }

    /// Returns the time from which on no charge counts.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        Timestamp::from_millis(self.account.expires_at().max(self.holds.last_end()))
    }

    fn count(&mut self, now: Timestamp, cost: Cost, id: ChargeId, outcome: Outcome) {
        if cost == Cost::PEEK {
            return;
        }
        if let Some(released) = self.released(now.as_millis()) {
            *self = released;
        }
        if self.account.is_impossible(now.as_millis()) {
            self.holds = Holds::default();
        }
        match outcome {
            Outcome::Admitted => self.account.record(now.as_millis(), cost.get(), id),
            Outcome::Refused => self.account.record_refused(now.as_millis(), cost.get(), id),
        }
    }

    /// Returns a copy of the ledger in which every reservation that expired by `at` was released or
    /// charged at its end. Returns `None` if no reservation expired by `at`.
    fn released(&self, at: u64) -> Option<Self> {
        if self.holds.first_end().is_none_or(|end| at < end) {
            return None;
        }
        let mut current = self.copied();
        for hold in current.holds.take_over(at) {
            if hold.on_expiry == OnExpiry::Release {
                current.account.refund(hold.until, hold.id, u64::MAX);
            }
        }
        Some(current)
    }

    fn as_of(&self, at: u64) -> Self {
        self.released(at).unwrap_or_else(|| self.copied())
    }

    fn copied(&self) -> Self {
        let (limit, account) = (self.limit.clone(), self.account.copied());
        Self { limit, account, holds: self.holds.clone() }
    }

    fn admission(&self, now: u64, cost: Cost, purpose: Purpose) -> Admission {
        let (needed, at_most) = (cost.needed(), self.limit.reservation_terms().at_most);
        if needed > self.limit.capacity() || purpose == Purpose::Hold && cost.get() > at_most {
            return Admission::Never;
        }
        let is_impossible = self.account.is_impossible(now);
        let fits = |at: u64| {
            let released = self.released(at);
            let later = released.as_ref().unwrap_or(self);
            // If the state is possible now, it is also possible at `at`, even if units are released
            // before `at`.
            let used =
                if is_impossible { self.account.used(now, at) } else { later.account.used(at, at) };
            let has_room = is_impossible || later.holds.have_room(cost.get(), at_most);
            used <= self.limit.capacity()
                && needed <= self.limit.capacity() - used
                && (purpose == Purpose::Charge || has_room)
        };
        if fits(now) {
            return Admission::Now;
        }
        Admission::At(Timestamp::from_millis(first_moment(now, fits)))
    }
}

/// Whether units are requested for a charge or for a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Charge,
    Hold,
}

/// Whether a counted charge was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Admitted,
    Refused,
}

/// Returns the first time after `now` at which `holds` is true. `holds` must stay true from this
/// time on.
///
/// # Panics
/// Panics if `holds` is not true within 2^60 milliseconds, which is longer than any limit needs.
fn first_moment(now: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let reach = (0..60).map(|power| 1_u64 << power).find(|reach| holds(now + reach));
    let mut late = now + reach.expect("every limit is fully reset at some time");
    let mut early = now;
    while late - early > 1 {
        let middle = early + (late - early) / 2;
        if holds(middle) {
            late = middle;
        } else {
            early = middle;
        }
    }
    late
}
