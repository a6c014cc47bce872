//! The reference model of a sliding log: all charges, each with its millisecond.

use tollgate_core::{ChargeId, MAX_EXACT, algo};

use super::account::{Account, Charged, units_in};

#[derive(Clone, Debug)]
pub(super) struct SlidingLog {
    quota: u64,
    window: u64,
    skew: u64,
    /// The charges, by their millisecond.
    charges: Vec<Charged>,
}

impl SlidingLog {
    pub(super) fn new(of: &algo::SlidingLog, skew: u64) -> Self {
        Self { quota: of.quota(), window: of.window().get(), skew, charges: Vec::new() }
    }

    fn newest(&self) -> Option<u64> {
        self.charges.iter().map(|charge| charge.position).max()
    }

    /// Returns the time of the decision: `at`, or the time of the latest charge if that charge was
    /// made after `at`.
    fn moment(&self, seen: u64, at: u64) -> u64 {
        if self.is_impossible(seen) {
            at
        } else {
            self.newest().map_or(at, |newest| newest.max(at))
        }
    }

    /// Deletes charges that no longer affect decisions, because later charges alone fill the quota.
    /// Without the deletion, the log of a limit that counts refusals would grow without bound.
    fn forget_outweighed(&mut self) {
        let charges = self.charges.clone();
        let after = |position: u64| {
            let later = charges.iter().filter(|charge| charge.position > position);
            later.map(|charge| charge.units).sum::<u64>()
        };
        self.charges.retain(|charge| after(charge.position) < self.quota);
    }
}

impl Account for SlidingLog {
    fn copied(&self) -> Box<dyn Account> {
        Box::new(self.clone())
    }

    fn used(&self, seen: u64, at: u64) -> u64 {
        if self.is_impossible(seen) {
            return 0;
        }
        let moment = self.moment(seen, at);
        let counted = self.charges.iter().filter(|charge| moment - charge.position < self.window);
        counted.map(|charge| charge.units).sum::<u64>().min(MAX_EXACT)
    }

    fn full_reset_at(&self, now: u64) -> u64 {
        if self.used(now, now) == 0 { now } else { self.expires_at() }
    }

    fn position(&self, now: u64) -> u64 {
        self.moment(now, now)
    }

    fn is_impossible(&self, now: u64) -> bool {
        self.newest().is_some_and(|newest| newest > now + self.skew)
    }

    fn record(&mut self, now: u64, units: u64, id: ChargeId) {
        let position = self.moment(now, now);
        if self.is_impossible(now) {
            self.charges.clear();
        }
        let units = units.min(MAX_EXACT - units_in(&self.charges, position));
        self.charges.push(Charged { position, id, units });
        self.forget_outweighed();
    }

    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64 {
        let moment = self.moment(now, now);
        let window = self.window;
        let found = self.charges.iter_mut().find(|charge| charge.id == id);
        found
            .filter(|charge| moment - charge.position < window)
            .map_or(0, |charge| charge.refund_units(units))
    }

    fn expires_at(&self) -> u64 {
        let unrefunded = self.charges.iter().filter(|charge| charge.units > 0);
        unrefunded.map(|charge| charge.position + self.window).max().unwrap_or(0)
    }
}
