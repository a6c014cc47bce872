//! The reference model of a sliding log: all charges, each with its millisecond.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::{Algorithm, ChargeId, MAX_EXACT, algo};

use super::account::{Account, Charged, units_in};

#[derive(Clone, Debug)]
pub(super) struct SlidingLog {
    quota: u64,
    window: u64,
    skew: u64,
    /// The charges, by their millisecond.
    charges: Vec<Charged>,
    /// The units of each millisecond that refused charges replaced.
    replaced: BTreeMap<u64, u64>,
}

impl SlidingLog {
    pub(super) fn new(of: &algo::SlidingLog, skew: u64) -> Self {
        let (quota, window) = (of.quota(), of.window().get());
        Self { quota, window, skew, charges: Vec::new(), replaced: BTreeMap::new() }
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

    /// Returns the units of the millisecond `position` that count.
    fn units_at(&self, position: u64) -> u64 {
        let replaced = self.replaced.get(&position).copied().unwrap_or(0);
        units_in(&self.charges, position) - replaced
    }

    /// Returns the milliseconds with charges, the earliest first.
    fn positions(&self) -> BTreeSet<u64> {
        self.charges.iter().map(|charge| charge.position).collect()
    }

    /// Removes up to `units` units, newer ones first, but none of the newest `kept` units.
    fn replace(&mut self, mut kept: u64, mut units: u64) {
        for position in self.positions().into_iter().rev() {
            let counted = self.units_at(position);
            let removed = counted.saturating_sub(kept).min(units);
            kept = kept.saturating_sub(counted);
            units -= removed;
            *self.replaced.entry(position).or_default() += removed;
        }
    }
}

impl Account for SlidingLog {
    fn copied(&self) -> Box<dyn Account> {
        Box::new(self.clone())
    }

    fn follow(&mut self, algorithm: &Algorithm) {
        if let Algorithm::SlidingLog(of) = algorithm {
            self.quota = of.quota();
        }
    }

    fn used(&self, seen: u64, at: u64) -> u64 {
        if self.is_impossible(seen) {
            return 0;
        }
        let (moment, positions) = (self.moment(seen, at), self.positions());
        let counted = positions.into_iter().filter(|position| moment - position < self.window);
        counted.map(|position| self.units_at(position)).sum::<u64>().min(MAX_EXACT)
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
            self.replaced.clear();
        }
        let units = units.min(MAX_EXACT - self.units_at(position));
        self.charges.push(Charged { position, id, units });
    }

    /// Records a refused charge. The charge fills the log at most to the quota. After that, each
    /// unit replaces the oldest of the newest units that fill the quota. Otherwise, the log of a
    /// limit that counts refusals would grow without bound.
    fn record_refused(&mut self, now: u64, units: u64, id: ChargeId) {
        let units = units.min(self.quota);
        if !self.is_impossible(now) {
            self.replace(self.quota - units, units);
        }
        self.record(now, units, id);
    }

    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64 {
        let (moment, window) = (self.moment(now, now), self.window);
        let found = self.charges.iter().position(|charge| charge.id == id);
        let Some(index) = found.filter(|index| moment - self.charges[*index].position < window)
        else {
            return 0;
        };
        let counted = self.units_at(self.charges[index].position);
        self.charges[index].refund_units(units.min(counted))
    }

    fn expires_at(&self) -> u64 {
        let counted = self.positions().into_iter().filter(|position| self.units_at(*position) > 0);
        counted.map(|position| position + self.window).max().unwrap_or(0)
    }
}
