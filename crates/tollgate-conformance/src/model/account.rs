//! What an algorithm's oracle answers.

use std::fmt::Debug;

use tollgate_core::ChargeId;

/// The charges of one limit and subject. All times are milliseconds since the epoch.
pub(super) trait Account: Debug + Send {
    /// The same account, to go on with apart.
    fn copied(&self) -> Box<dyn Account>;

    /// Units used at `at`, leaving out what came from an impossible future as judged at `seen`.
    fn used(&self, seen: u64, at: u64) -> u64;

    /// When nothing of it will be used any more.
    fn full_reset_at(&self, now: u64) -> u64;

    /// Where a charge at `now` is put.
    fn position(&self, now: u64) -> u64;

    /// Whether what is kept comes from an impossible future and counts as nothing.
    fn is_impossible(&self, now: u64) -> bool;

    /// Counts `units` of `id`, whether they fit or not.
    fn record(&mut self, now: u64, units: u64, id: ChargeId);

    /// Gives back up to `units` of what `id` charged, where that is not over; answers how many.
    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64;

    /// Puts the end of `id`'s lease off; answers whether it was held.
    fn renew(&mut self, _now: u64, _id: ChargeId) -> bool {
        false
    }

    /// The moment from which nothing counts that is not refunded.
    fn expires_at(&self) -> u64;
}

/// What one charge counts for.
#[derive(Clone, Debug)]
pub(super) struct Charged {
    /// The window, block, bucket or millisecond that it was put into.
    pub(super) place: u64,
    pub(super) id: ChargeId,
    /// What is not given back of it.
    pub(super) units: u64,
}

impl Charged {
    /// Takes up to `units` of what is left of it.
    pub(super) fn refund_units(&mut self, units: u64) -> u64 {
        let refunded = units.min(self.units);
        self.units -= refunded;
        refunded
    }
}

/// The units in `place`.
pub(super) fn units_in(charges: &[Charged], place: u64) -> u64 {
    charges.iter().filter(|charge| charge.place == place).map(|charge| charge.units).sum()
}
