//! Operations that undo or change a charge: refunds, settlements, extensions and renewals.

use tollgate_core::decide::decide;
use tollgate_core::{Admission, Charge, ChargePosition, Cost, Operation, Reading, Timestamp};

use super::overflow::{untagged, untagged_position};
use super::packed::Packed;
use super::shard::{Shard, retention};
use super::target::{Growth, Target, is_concurrency, remembered_until};

impl Shard {
    /// Refunds the charge at the position `position`, unless the same charge was refunded before.
    /// Remembers the refund if the same refund may arrive again.
    pub(super) fn refund(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        position: ChargePosition,
    ) -> Reading {
        if target.refund.is_some_and(|refund| self.table.find(refund).is_some()) {
            return self.leave(now, target);
        }
        let reading = self.redeem(now, target);
        let limit = target.charge.limit;
        let until = remembered_until(limit, untagged_position(position), now);
        if let Some(refund) = target.refund
            && reading.refunded > 0
            && now < until
        {
            let share = self.shares.enter(limit.state_digest());
            let packed = Packed::refunded(until).in_share(share);
            self.table.insert(refund, packed);
            self.shares.add(self.weigh(packed));
            self.first_end = self.first_end.min(until);
            self.counts.refunds += 1;
        }
        reading
    }

    /// Refunds, settles or extends a charge in the entry or the overflow counter that counted the
    /// charge.
    ///
    /// Settling removes the reservation from the state, and may add a charge with the real cost.
    /// The memory that the state no longer needs is freed.
    pub(super) fn redeem(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        let Some(there) = untagged(operation) else { return self.change(now, target) };
        let reading = self.redeem_by_overflow(now, target, there);
        if !is_concurrency(limit) || self.table.find(target.key).is_none() {
            return reading;
        }
        // The entry was created with a copy of every permit of the counter, so the permit is in
        // both.
        let charge = Charge { operation: there, ..target.charge };
        let here = self.change(now, &Target { charge, ..*target });
        let refunded = here.refunded.max(reading.refunded);
        Reading { admission: here.admission.min(reading.admission), refunded, ..here }
    }

    /// Renews a permit in the entry, in the overflow counter, or in both.
    pub(super) fn renew(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        if self.table.find(target.key).is_none() {
            let renewed = self.renew_by_overflow(now, target);
            return renewed.unwrap_or_else(|| {
                decide(None, target.charge.limit, target.charge.operation, now).0
            });
        }
        let here = self.change(now, target);
        match self.renew_by_overflow(now, target) {
            Some(_) => Reading { admission: Admission::Now, ..here },
            None => here,
        }
    }

    pub(super) fn change(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        let growth = match operation {
            Operation::Settle { .. } => Growth::None,
            _ => Growth::Kept,
        };
        self.step(target, growth, |cell| {
            let (reading, cell) = decide(cell, limit, operation, now);
            let retention = retention(cell.as_ref(), limit, Cost::PEEK, reading.fits_again, now);
            (reading, cell, retention)
        })
    }
}
