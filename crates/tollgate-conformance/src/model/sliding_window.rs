//! The reference model of a sliding window: all charges, each with the number of its block.

use tollgate_core::{ChargeId, MAX_EXACT, algo};

use super::account::{Account, Charged, units_in};

#[derive(Clone, Debug)]
pub(super) struct SlidingWindow {
    blocks: u64,
    precision: u64,
    skew: u64,
    /// The charges, by their block.
    charges: Vec<Charged>,
}

impl SlidingWindow {
    pub(super) fn new(of: &algo::SlidingWindow, skew: u64) -> Self {
        let precision = of.precision().get();
        let blocks = of.window().get().div_ceil(precision);
        Self { blocks, precision, skew, charges: Vec::new() }
    }

    fn newest(&self) -> Option<u64> {
        self.charges.iter().map(|charge| charge.position).max()
    }

    /// Returns the number of the current block, which is never older than the latest block with
    /// charges.
    fn head(&self, seen: u64, at: u64) -> u64 {
        let by_clock = at / self.precision;
        if self.is_impossible(seen) {
            return by_clock;
        }
        self.newest().map_or(by_clock, |newest| newest.max(by_clock))
    }

    fn counts(&self, charge: &Charged, head: u64) -> bool {
        head - charge.position < self.blocks
    }

    fn leaves_at(&self, block: u64) -> u64 {
        (block + self.blocks) * self.precision
    }
}

impl Account for SlidingWindow {
    fn copied(&self) -> Box<dyn Account> {
        Box::new(self.clone())
    }

    fn used(&self, seen: u64, at: u64) -> u64 {
        if self.is_impossible(seen) {
            return 0;
        }
        let head = self.head(seen, at);
        let counted = self.charges.iter().filter(|charge| self.counts(charge, head));
        counted.map(|charge| charge.units).sum::<u64>().min(MAX_EXACT)
    }

    fn full_reset_at(&self, now: u64) -> u64 {
        if self.used(now, now) == 0 { now } else { self.expires_at() }
    }

    fn position(&self, now: u64) -> u64 {
        self.head(now, now)
    }

    fn is_impossible(&self, now: u64) -> bool {
        self.newest().is_some_and(|newest| newest * self.precision > now + self.skew)
    }

    fn record(&mut self, now: u64, units: u64, id: ChargeId) {
        let position = self.head(now, now);
        if self.is_impossible(now) {
            self.charges.clear();
        }
        let units = units.min(MAX_EXACT - units_in(&self.charges, position));
        self.charges.push(Charged { position, id, units });
    }

    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64 {
        let head = self.head(now, now);
        let blocks = self.blocks;
        let found = self.charges.iter_mut().find(|charge| charge.id == id);
        found
            .filter(|charge| head - charge.position < blocks)
            .map_or(0, |charge| charge.refund_units(units))
    }

    fn expires_at(&self) -> u64 {
        let unrefunded = self.charges.iter().filter(|charge| charge.units > 0);
        unrefunded.map(|charge| self.leaves_at(charge.position)).max().unwrap_or(0)
    }
}
