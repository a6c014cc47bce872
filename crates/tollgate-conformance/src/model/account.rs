//! The interface of the reference model for one algorithm.

use std::fmt::Debug;

use tollgate_core::{Algorithm, ChargeId};

/// All charges of one limit and subject. All times are in milliseconds since the Unix epoch.
pub(super) trait Account: Debug + Send {
    /// Returns a copy that is independent of this value.
    fn copied(&self) -> Box<dyn Account>;

    /// Decides further operations by the quota of `algorithm`, which is this account's algorithm
    /// with any quota. The default is for an account that counts without a quota.
    fn follow(&mut self, _algorithm: &Algorithm) {}

    /// Returns the units used at the time `at`, as they are reported to a caller with a clock that
    /// shows `seen`. State from a time that is too far after `seen` does not count.
    fn used(&self, seen: u64, at: u64) -> u64;

    /// Returns the time at which all units will be available again.
    fn full_reset_at(&self, now: u64) -> u64;

    /// Returns the position that a charge at `now` gets.
    fn position(&self, now: u64) -> u64;

    /// Returns whether the state is from a time too far after `now`, and therefore counts as empty.
    fn is_impossible(&self, now: u64) -> bool;

    /// Counts an admitted charge of `units` with the id `id`, even if the charge does not fit.
    fn record(&mut self, now: u64, units: u64, id: ChargeId);

    /// Counts a refused charge of a limit that counts refusals.
    fn record_refused(&mut self, now: u64, units: u64, id: ChargeId) {
        self.record(now, units, id);
    }

    /// Refunds up to `units` units of the charge `id` that have not expired. Returns the number of
    /// refunded units.
    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64;

    /// Extends the permit of `id`. Returns whether the permit was held.
    fn renew(&mut self, _now: u64, _id: ChargeId) -> bool {
        false
    }

    /// Returns the time from which on no charge counts.
    fn expires_at(&self) -> u64;
}

/// One counted charge.
#[derive(Clone, Debug)]
pub(super) struct Charged {
    /// The window, block, bucket or millisecond in which the charge was counted.
    pub(super) position: u64,
    pub(super) id: ChargeId,
    /// The units of the charge that were not refunded.
    pub(super) units: u64,
}

impl Charged {
    /// Removes up to `units` of the charge's units. Returns the number of removed units.
    pub(super) fn refund_units(&mut self, units: u64) -> u64 {
        let refunded = units.min(self.units);
        self.units -= refunded;
        refunded
    }
}

/// Returns the units that were charged in the window, block, bucket or millisecond `position`.
pub(super) fn units_in(charges: &[Charged], position: u64) -> u64 {
    charges.iter().filter(|charge| charge.position == position).map(|charge| charge.units).sum()
}
