//! One limit and subject.

use tollgate_core::{
    Algorithm, ChargeId, Cost, Fit, Found, Limit, Mark, Reading, Refusals, Timestamp,
};

use super::account::Account;
use super::concurrency::Concurrency;
use super::fixed_window::FixedWindow;
use super::sliding_log::SlidingLog;
use super::sliding_window::SlidingWindow;
use super::token_bucket::TokenBucket;
use super::two_bucket::TwoBucket;

/// All that one subject was ever charged on one limit.
#[derive(Debug)]
pub struct Ledger {
    limit: Limit,
    account: Box<dyn Account>,
}

impl Ledger {
    /// Nothing charged yet.
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
        Self { limit: limit.clone(), account }
    }

    /// How the limit stands at `now` for one more charge of `cost`.
    #[must_use]
    pub fn standing(&self, now: Timestamp, cost: Cost) -> Reading {
        let moment = now.as_millis();
        let used = self.account.used(moment, moment);
        let fit = self.fit(moment, cost.needed());
        let found = if self.account.is_impossible(moment) {
            Found::Discarded
        } else if used > 0 {
            Found::State
        } else {
            Found::Nothing
        };
        Reading {
            fit,
            again: fit,
            used,
            whole_at: Timestamp::from_millis(self.account.whole_at(moment)),
            mark: Mark(self.account.mark(moment)),
            given_back: 0,
            found,
        }
    }

    /// Counts a charge that fits every limit of its call.
    pub fn admit(&mut self, now: Timestamp, cost: Cost, id: ChargeId) -> Reading {
        let before = self.standing(now, cost);
        self.count(now, cost, id);
        Reading { fit: Fit::Now, found: before.found, ..self.standing(now, cost) }
    }

    /// Answers a charge that some limit of its call refused, and counts it if this limit does.
    pub fn refuse(&mut self, now: Timestamp, cost: Cost, id: ChargeId) -> Reading {
        let before = self.standing(now, cost);
        if self.limit.refusals() == Refusals::Free {
            return before;
        }
        self.count(now, cost, id);
        let after = self.standing(now, cost);
        let fit = if before.fit == Fit::Now { Fit::Now } else { after.fit };
        Reading { fit, found: before.found, ..after }
    }

    /// Gives back what `id` was charged.
    pub fn refund(&mut self, now: Timestamp, id: ChargeId) -> Reading {
        let before = self.standing(now, Cost::PEEK);
        let given_back = match before.found {
            Found::Discarded => 0,
            Found::Nothing | Found::State => self.account.refund(now.as_millis(), id),
        };
        Reading { given_back, found: before.found, ..self.standing(now, Cost::PEEK) }
    }

    /// Puts the end of a lease off: fits if it was held.
    pub fn renew(&mut self, now: Timestamp, id: ChargeId) -> Reading {
        let renewed = self.account.renew(now.as_millis(), id);
        let fit = if renewed { Fit::Now } else { Fit::Never };
        Reading { fit, ..self.standing(now, Cost::PEEK) }
    }

    /// The moment from which nothing counts that is not refunded.
    #[must_use]
    pub fn over_at(&self) -> Timestamp {
        Timestamp::from_millis(self.account.over_at())
    }

    fn count(&mut self, now: Timestamp, cost: Cost, id: ChargeId) {
        if cost != Cost::PEEK {
            self.account.record(now.as_millis(), cost.get(), id);
        }
    }

    fn fit(&self, now: u64, needed: u64) -> Fit {
        if needed > self.limit.capacity() {
            return Fit::Never;
        }
        let fits = |at: u64| {
            let used = self.account.used(now, at);
            used <= self.limit.capacity() && needed <= self.limit.capacity() - used
        };
        if fits(now) {
            return Fit::Now;
        }
        Fit::At(Timestamp::from_millis(first_moment(now, fits)))
    }
}

/// The first moment after `now` of which `holds` is true, if it stays true from then on.
///
/// # Panics
/// If it is not true in 2^60 milliseconds: no limit is that long.
fn first_moment(now: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let reach = (0..60).map(|power| 1_u64 << power).find(|reach| holds(now + reach));
    let mut late = now + reach.expect("every limit is whole again some time");
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
