//! The reference model of a two-bucket estimate: all charges, each with the number of its calendar
//! bucket.

use tollgate_core::{Algorithm, ChargeId, MAX_EXACT, algo};

use super::account::{Account, Charged, units_in};

#[derive(Clone, Debug)]
pub(super) struct TwoBucket {
    quota: u64,
    window: u64,
    skew: u64,
    /// The charges, by their bucket.
    charges: Vec<Charged>,
}

impl TwoBucket {
    pub(super) fn new(of: &algo::TwoBucket, skew: u64) -> Self {
        Self { quota: of.quota(), window: of.window().get(), skew, charges: Vec::new() }
    }

    fn newest(&self) -> Option<u64> {
        self.charges.iter().map(|charge| charge.position).max()
    }

    /// Returns the number of the current bucket, and the time in milliseconds since that bucket
    /// began. The current bucket is never older than the latest bucket with charges.
    fn head(&self, seen: u64, at: u64) -> (u64, u64) {
        let by_clock = at / self.window;
        match self.newest() {
            Some(newest) if newest > by_clock && !self.is_impossible(seen) => (newest, 0),
            _ => (by_clock, at % self.window),
        }
    }
}

impl Account for TwoBucket {
    fn copied(&self) -> Box<dyn Account> {
        Box::new(self.clone())
    }

    fn follow(&mut self, algorithm: &Algorithm) {
        if let Algorithm::TwoBucket(of) = algorithm {
            self.quota = of.quota();
        }
    }

    fn used(&self, seen: u64, at: u64) -> u64 {
        if self.is_impossible(seen) {
            return 0;
        }
        let (bucket, elapsed) = self.head(seen, at);
        let current = u128::from(units_in(&self.charges, bucket));
        let previous =
            bucket.checked_sub(1).map_or(0, |bucket| units_in(&self.charges, bucket)).into();
        let weight = |units: u128, millis: u64| units * u128::from(millis);
        let estimate = weight(previous, self.window - elapsed) + weight(current, self.window);
        u64::try_from(estimate.div_ceil(self.window.into()))
            .expect("at most twice the largest quota")
    }

    fn full_reset_at(&self, now: u64) -> u64 {
        if self.used(now, now) == 0 { now } else { self.expires_at() }
    }

    fn position(&self, now: u64) -> u64 {
        self.head(now, now).0
    }

    fn is_impossible(&self, now: u64) -> bool {
        self.newest().is_some_and(|newest| newest * self.window > now + self.skew)
    }

    fn record(&mut self, now: u64, units: u64, id: ChargeId) {
        let (position, _) = self.head(now, now);
        if self.is_impossible(now) {
            self.charges.clear();
        }
        let largest = MAX_EXACT / 2 / self.window;
        let units = units.min(largest - units_in(&self.charges, position));
        self.charges.push(Charged { position, id, units });
    }

    /// Records a refused charge, which fills its bucket at most to the quota.
    fn record_refused(&mut self, now: u64, units: u64, id: ChargeId) {
        let (position, _) = self.head(now, now);
        let used = if self.is_impossible(now) { 0 } else { units_in(&self.charges, position) };
        self.record(now, units.min(self.quota.saturating_sub(used)), id);
    }

    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64 {
        let (bucket, _) = self.head(now, now);
        let found = self.charges.iter_mut().find(|charge| charge.id == id);
        found
            .filter(|charge| bucket - charge.position < 2)
            .map_or(0, |charge| charge.refund_units(units))
    }

    fn expires_at(&self) -> u64 {
        let unrefunded = self.charges.iter().filter(|charge| charge.units > 0);
        unrefunded.map(|charge| (charge.position + 2) * self.window).max().unwrap_or(0)
    }
}
