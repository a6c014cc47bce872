//! Charges with a state that fits in the entry of the table both before and after the charge.
//! Nearly all charges are of this type.

use tollgate_core::decide::{Plain, charge_plain};
use tollgate_core::{Admission, Charge, Cost, Limit, Operation, Reading, StoredState, Timestamp};

use super::fingerprint::Fingerprint;
use super::packed::{Content, Packed, Retention};
use super::shard::{Shard, retention};
use super::target::{CallOutcome, Target, counts};

/// The result of charging a state that is in the entry of the table: the reading and the new entry.
#[derive(Clone, Copy)]
pub(super) struct InPlace {
    pub(super) reading: Reading,
    /// The entry after the charge. Even a refused charge can change the entry.
    pub(super) after: Packed,
}

impl Shard {
    /// Charges `cost` as the only charge of a call. Returns `None` and changes nothing if the entry
    /// does not contain a state of `limit`.
    #[inline(always)]
    pub(super) fn charge_in_place(
        &mut self,
        now: Timestamp,
        limit: &Limit,
        cost: Cost,
        key: Fingerprint,
    ) -> Option<Reading> {
        let (slot, before) = self.table.find_entry(key)?;
        let InPlace { reading, after } = charged(before, limit, cost, now)?;
        self.table.replace(slot, after);
        self.turn(before, after, &reading);
        Some(reading)
    }

    /// Returns the change that `target` makes, if `target` is a charge that fits and its entry
    /// contains the state. Returns `None` for any other target. Changes nothing.
    pub(super) fn plan_in_place(&self, now: Timestamp, target: &Target<'_>) -> Option<InPlace> {
        let Charge { limit, operation: Operation::Charge { cost, .. }, .. } = target.charge else {
            return None;
        };
        let (_, before) = self.table.find_entry(target.key)?;
        let planned = charged(before, limit, cost, now)?;
        (planned.reading.admission == Admission::Now).then_some(planned)
    }

    /// Applies `planned`, which [`plan_in_place`](Self::plan_in_place) returned for the entry of
    /// `key`. The entry must be unchanged since that call.
    pub(super) fn set_in_place(&mut self, key: Fingerprint, planned: &InPlace) -> Reading {
        if let Some(slot) = self.table.find(key)
            && let Some(before) = self.table.replace(slot, planned.after)
        {
            self.turn(before, planned.after, &planned.reading);
        }
        planned.reading
    }

    /// Updates the counts of the shard after a charge with this `reading` replaced the entry
    /// `before` by the entry `after`.
    #[inline]
    pub(super) fn turn(&mut self, before: Packed, after: Packed, reading: &Reading) {
        self.shares.turn(before.share(), before.retention(), after.retention());
        if reading.found == StoredState::Discarded {
            self.counts.discarded += 1;
        }
    }
}

/// Computes the charge of `cost` on the state in the entry `packed`. Returns the reading and the
/// entry after the charge, and stores nothing. Returns `None` if the entry does not contain a state
/// of `limit`.
#[inline(always)]
pub(super) fn charged(
    packed: Packed,
    limit: &Limit,
    cost: Cost,
    now: Timestamp,
) -> Option<InPlace> {
    let Content::Plain(state) = packed.content() else { return None };
    let (reading, next) = charge_plain(state, limit, cost, now)?;
    let is_refused = reading.admission != Admission::Now;
    let after = if counts(limit, cost, CallOutcome::of(reading.admission)) {
        let retention = match reading.admission {
            Admission::Now => plain_retention(next, limit, cost, reading.fits_again, now),
            Admission::At(_) | Admission::Never => Retention::AtLimit,
        };
        // A state that fits in its entry expires as soon as none of its units is used.
        Packed::plain(next, reading.full_reset_at, retention).in_share_of(packed)
    } else if is_refused && reading.found == StoredState::Present {
        packed.protected()
    } else {
        packed
    };
    Some(InPlace { reading, after })
}

/// Returns the [`retention`] of `state`, which fits in its entry, after a charge of `cost` on
/// `limit`. If the cost is one unit, `fits_again` alone determines the retention, and the state is
/// not converted to a `Cell`.
#[inline]
fn plain_retention(
    state: Plain,
    limit: &Limit,
    cost: Cost,
    fits_again: Admission,
    now: Timestamp,
) -> Retention {
    match fits_again {
        Admission::Now if cost.needed() == 1 => Retention::Evictable,
        Admission::At(_) | Admission::Never if cost.needed() == 1 => Retention::AtLimit,
        _ => retention(Some(&state.into()), limit, cost, fits_again, now),
    }
}
