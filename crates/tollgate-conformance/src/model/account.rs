//! The interface of an algorithm's oracle.

use std::fmt::Debug;

use tollgate_core::ChargeId;

/// The charges of one limit and subject. All times are in milliseconds since the Unix epoch.
pub(super) trait Account: Debug + Send {
    /// Returns an independent copy.
    fn copied(&self) -> Box<dyn Account>;

    /// Returns the units used at `at`, without state that is from an impossible future by the clock
    /// at `seen`.
    fn used(&self, seen: u64, at: u64) -> u64;

    /// Returns when all units will be available again.
    fn full_reset_at(&self, now: u64) -> u64;

    /// Returns the position that a charge at `now` gets.
    fn position(&self, now: u64) -> u64;

    /// Returns whether the state is from an impossible future and counts as empty.
    fn is_impossible(&self, now: u64) -> bool;

    /// Counts `units` of `id`, whether they fit or not.
    fn record(&mut self, now: u64, units: u64, id: ChargeId);

    /// Refunds up to `units` of the charge `id` that have not expired. Returns how many.
    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64;

    /// Extends the permit of `id`. Returns whether it was held.
    fn renew(&mut self, _now: u64, _id: ChargeId) -> bool {
        false
    }

    /// Returns the time from which no charge counts any more.
    fn expires_at(&self) -> u64;
}

/// One charge.
#[derive(Clone, Debug)]
pub(super) struct Charged {
    /// The window, block, bucket or millisecond in which the charge was counted.
    pub(super) place: u64,
    pub(super) id: ChargeId,
    /// The units that were not refunded.
    pub(super) units: u64,
}

impl Charged {
    /// Removes up to `units` of the charge's units. Returns how many were removed.
    pub(super) fn refund_units(&mut self, units: u64) -> u64 {
        let refunded = units.min(self.units);
        self.units -= refunded;
        refunded
    }
}

/// Returns the units in `place`.
pub(super) fn units_in(charges: &[Charged], place: u64) -> u64 {
    charges.iter().filter(|charge| charge.place == place).map(|charge| charge.units).sum()
}
