//! The reference model of a concurrency limit: a list of the permits that are held.

use tollgate_core::{ChargeId, MAX_EXACT, algo};

use super::account::Account;

#[derive(Clone, Debug)]
pub(super) struct Concurrency {
    lease: u64,
    skew: u64,
    leases: Vec<Lease>,
}

#[derive(Clone, Debug)]
struct Lease {
    id: ChargeId,
    units: u64,
    granted_at: u64,
}

impl Concurrency {
    pub(super) fn new(of: &algo::Concurrency, skew: u64) -> Self {
        Self { lease: of.permit_ttl().get(), skew, leases: Vec::new() }
    }

    fn possible(&self, seen: u64) -> impl Iterator<Item = &Lease> {
        self.leases.iter().filter(move |lease| lease.granted_at <= seen + self.skew)
    }

    /// Returns the time of the decision: `at`, or the latest start of a permit if a permit started
    /// after `at`.
    fn moment(&self, seen: u64, at: u64) -> u64 {
        self.possible(seen).map(|lease| lease.granted_at).fold(at, u64::max)
    }

    fn held(&self, seen: u64, at: u64) -> impl Iterator<Item = &Lease> {
        let moment = self.moment(seen, at);
        self.possible(seen).filter(move |lease| moment < lease.granted_at + self.lease)
    }

    /// Removes expired permits.
    fn sweep(&mut self, now: u64) {
        let held: Vec<_> = self.held(now, now).map(|lease| lease.id).collect();
        self.leases.retain(|lease| held.contains(&lease.id));
    }
}

impl Account for Concurrency {
    fn copied(&self) -> Box<dyn Account> {
        Box::new(self.clone())
    }

    fn used(&self, seen: u64, at: u64) -> u64 {
        self.held(seen, at).map(|lease| lease.units).sum::<u64>().min(MAX_EXACT)
    }

    fn full_reset_at(&self, now: u64) -> u64 {
        self.held(now, now).map(|lease| lease.granted_at + self.lease).max().unwrap_or(now)
    }

    fn position(&self, _now: u64) -> u64 {
        0
    }

    fn is_impossible(&self, now: u64) -> bool {
        self.used(now, now) == 0 && self.possible(now).count() < self.leases.len()
    }

    fn record(&mut self, now: u64, units: u64, id: ChargeId) {
        let granted_at = self.moment(now, now);
        self.sweep(now);
        self.leases.retain(|lease| lease.id != id);
        self.leases.push(Lease { id, units, granted_at });
    }

    fn refund(&mut self, now: u64, id: ChargeId, _units: u64) -> u64 {
        if !self.held(now, now).any(|lease| lease.id == id) {
            return 0;
        }
        self.sweep(now);
        let index = self.leases.iter().position(|lease| lease.id == id);
        index.map_or(0, |index| self.leases.remove(index).units)
    }

    fn renew(&mut self, now: u64, id: ChargeId) -> bool {
        if !self.held(now, now).any(|lease| lease.id == id) {
            return false;
        }
        let moment = self.moment(now, now);
        self.sweep(now);
        self.leases.iter_mut().filter(|lease| lease.id == id).for_each(|lease| {
            lease.granted_at = moment;
        });
        true
    }

    fn expires_at(&self) -> u64 {
        self.leases.iter().map(|lease| lease.granted_at + self.lease).max().unwrap_or(0)
    }
}
