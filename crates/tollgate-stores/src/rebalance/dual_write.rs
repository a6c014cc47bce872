//! The dual-write phase, in which the old owners decide, and admitted charges are also made at the
//! new owners.

use std::sync::atomic::Ordering;

use tollgate_core::algo::{Anchor, fixed_window};
use tollgate_core::{
    Admission, Algorithm, Cell, CellKey, CellTransfer, Charge, Cost, Deduplication, Limit,
    Operation, Reading, Readings, Refusals, Store, StoreError, StoredState, Timestamp, assess,
};

use super::{Phase, Rebalance};
use crate::join::join_pair;

impl<S: CellTransfer + 'static> Rebalance<S> {
    /// Applies `charges` at the old owners. Also applies the admitted charges among `moving` at the
    /// new owners.
    ///
    /// The call fails if an old owner does not answer, or if a new owner does not answer a reset.
    /// If the future is dropped before both owners have answered, the next decision on the moving
    /// subjects first transfers their cells again.
    pub(super) async fn dual_write(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        moving: &[usize],
    ) -> Result<Readings, StoreError> {
        let moved: Vec<_> = moving.iter().map(|index| charges[*index]).collect();
        let owners = (self.before(), &self.after);
        self.transfer.transfer(now, |_| Phase::DualWrite as u64, owners, &moved).await;
        let changes = moved.iter().any(|charge| !charge.operation.is_read_only());
        let divergence =
            Divergence { rebalance: self, charges: if changes { &moved } else { &[] } };
        let has_charges = charges.iter().any(|charge| charge.operation.as_charge().is_some());
        let (mut readings, followed) = if changes && !has_charges {
            // None of these operations can be refused. The old owner may refund without an answer,
            // so the new owner is always called: a later join would not lower the new owner's
            // usage.
            let led = self.before().apply(now, charges);
            let (led, followed) = join_pair(led, self.after.apply(now, &moved)).await;
            (led?, followed)
        } else {
            let mut readings = self.before().apply(now, charges).await?;
            if !changes || is_refused(charges, &readings) {
                divergence.ends();
                self.peek_both(now, &moved, moving, &mut readings).await;
                return Ok(readings);
            }
            (readings, self.after.apply(now, &moved).await)
        };
        let followed = match followed {
            Ok(followed) => followed,
            // The reset fails, because the next join would restore the usage from the new owner's
            // cells.
            Err(reason) if moved.iter().any(|charge| charge.operation == Operation::Reset) => {
                return Err(reason);
            }
            Err(_) => return Ok(readings),
        };
        let reconciled = if is_refused(&moved, &followed) {
            let refunded = self.refund_unmatched(now, charges, moving, &mut readings).await;
            for ((index, charge), follows) in moving.iter().zip(&moved).zip(followed.iter()) {
                let led = &mut readings[*index];
                // The new owner may lack charges from nodes that use only the old map.
                if follows.admission != Admission::Now || !counted_more(charge, led, follows) {
                    *led = *follows;
                }
            }
            refunded
        } else {
            let (more_at_old, more_at_new) = surplus(&moved, moving, &readings, &followed);
            let apart = merge_readings(now, &moved, moving, &followed, &mut readings);
            let evened = self.refund_surplus(now, &more_at_old, &more_at_new).await;
            evened.and(self.reconcile(now, &apart).await)
        };
        if reconciled.is_ok() {
            divergence.ends();
        }
        Ok(readings)
    }

    /// Peeks at the new owners for `moved`, the charges on moving subjects of a call that is
    /// refused or only reads. Replaces each of their readings by the new owner's reading if the new
    /// owner has counted more. `moving` contains the index of each charge of `moved` in `readings`.
    async fn peek_both(
        &self,
        now: Timestamp,
        moved: &[Charge<'_>],
        moving: &[usize],
        readings: &mut Readings,
    ) {
        let peeks: Vec<_> = moved.iter().map(peek_of).collect();
        if peeks.iter().any(|charge| !charge.operation.is_read_only()) {
            return;
        }
        let Ok(seen) = self.after.apply(now, &peeks).await else { return };
        for ((index, charge), seen) in moving.iter().zip(moved).zip(seen.iter()) {
            let led = &mut readings[*index];
            if counted_more(charge, seen, led) {
                *led = *seen;
            }
        }
    }

    /// Refunds the units of settlements that only one of the two owners could charge. A settlement
    /// charges such units if its cost is above the reservation. Refunds `at_old` at the old owners
    /// and `at_new` at the new owners.
    async fn refund_surplus(
        &self,
        now: Timestamp,
        at_old: &[Charge<'_>],
        at_new: &[Charge<'_>],
    ) -> Result<(), StoreError> {
        if at_old.is_empty() && at_new.is_empty() {
            return Ok(());
        }
        let (old, new) =
            join_pair(self.before().apply(now, at_old), self.after.apply(now, at_new)).await;
        old.and(new).map(drop)
    }

    /// Joins the cells at `places` of both owners into each other. Both owners then continue in the
    /// same windows with the same reservations. This is needed because an owner without a record of
    /// a reservation could not release the reserved units.
    async fn reconcile(&self, now: Timestamp, places: &[CellKey<'_>]) -> Result<(), StoreError> {
        if places.is_empty() {
            return Ok(());
        }
        let (led, followed) =
            join_pair(self.before().cells(now, places), self.after.cells(now, places)).await;
        let held = |cells: Vec<Option<Cell>>| -> Vec<_> {
            let held = places.iter().zip(cells);
            held.filter_map(|(index, cell)| Some((*index, cell?))).collect()
        };
        let (led, followed) = (held(led?), held(followed?));
        let (before, after) =
            join_pair(self.before().join(now, &followed), self.after.join(now, &led)).await;
        before.and(after)
    }

    /// Refunds at the old owners the charges that a new owner refused. Changes their readings to
    /// the status after the refund.
    async fn refund_unmatched(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        moving: &[usize],
        readings: &mut Readings,
    ) -> Result<(), StoreError> {
        let (mut refunds, mut places) = (Vec::new(), Vec::new());
        for (index, charge) in charges.iter().enumerate() {
            let owner = if moving.contains(&index) { Owner::Moved } else { Owner::Same };
            if let Some(operation) = undo_of(now, charge, &readings[index], owner) {
                refunds.push(Charge { operation, ..*charge });
                places.push(index);
            }
        }
        let refunded = self.before().apply(now, &refunds).await?;
        for (index, after) in places.into_iter().zip(refunded.iter()) {
            // The returned status is the status after the refund. The charge would fit this status
            // again.
            let taken = &mut readings[index];
            *taken = Reading {
                used: after.used,
                full_reset_at: after.full_reset_at,
                reserved: after.reserved,
                ..*taken
            };
            taken.fits_again = Admission::Now;
        }
        Ok(())
    }
}

/// A guard for charges that the old owner may have counted and the new owner may not have counted.
/// If the guard is dropped without a call of [`ends`](Self::ends), the charges are counted as
/// diverged, and their cells are transferred again.
struct Divergence<'a, S> {
    rebalance: &'a Rebalance<S>,
    charges: &'a [Charge<'a>],
}

impl<S> Divergence<'_, S> {
    /// Marks the charges as counted by both owners.
    fn ends(mut self) {
        self.charges = &[];
    }
}

impl<S> Drop for Divergence<'_, S> {
    fn drop(&mut self) {
        if !self.charges.is_empty() {
            self.rebalance.transfer.forget(self.charges);
            self.rebalance.diverged.fetch_add(self.charges.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Whether the new map assigns a subject to the same owner as the old map.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The new map assigns the subject to another owner.
    Moved,
    /// Both maps assign the subject to the same owner.
    Same,
}

/// Returns the operation that undoes `charge` at the owner that admitted the charge, after another
/// owner refused. `reading` is the admitting owner's reading of the charge. Returns `None` if
/// nothing must be undone.
fn undo_of(
    now: Timestamp,
    charge: &Charge<'_>,
    reading: &Reading,
    owner: Owner,
) -> Option<Operation> {
    let (cost, _) = charge.operation.as_charge()?;
    if cost == Cost::PEEK || charge.limit.refusals() == Refusals::Counted {
        return None;
    }
    // If this owner has counted only this charge, the charge opened the window, and a reset removes
    // the window. Nothing is lost if the subject moves, because the owner that refused has the
    // whole usage. A subject that does not move has its usage at one owner only.
    if owner == Owner::Moved && reading.used == cost.get() && is_new(now, charge.limit, reading) {
        return Some(Operation::Reset);
    }
    charge.operation.inverse(reading.position)
}

/// Returns whether a charge at `now` with this reading may have opened state that its refund does
/// not remove: a window that starts at `now`, or a bucket whose refund is rounded. All other state
/// is not reset, because a reset would remove the charges of other nodes too.
fn is_new(now: Timestamp, limit: &Limit, reading: &Reading) -> bool {
    match limit.algorithm() {
        Algorithm::FixedWindow(window) => {
            matches!(window.anchor(), Anchor::FirstRequest)
                && reading.full_reset_at == now.after(window.window())
        }
        Algorithm::TokenBucket(_) => true,
        Algorithm::SlidingWindow(_)
        | Algorithm::TwoBucket(_)
        | Algorithm::SlidingLog(_)
        | Algorithm::Concurrency(_) => false,
    }
}

/// Returns refunds for the old owners and refunds for the new owners. A settlement above its
/// reservation may charge units at one owner for which the other owner, with more usage, has no
/// room. The refunds return these units.
fn surplus<'a>(
    moved: &[Charge<'a>],
    moving: &[usize],
    readings: &Readings,
    followed: &Readings,
) -> (Vec<Charge<'a>>, Vec<Charge<'a>>) {
    let (mut at_old, mut at_new) = (Vec::new(), Vec::new());
    for ((index, charge), follows) in moving.iter().zip(moved).zip(followed.iter()) {
        let led = &readings[*index];
        let Operation::Settle { id, .. } = charge.operation else { continue };
        if led.admission != Admission::Now
            || follows.admission != Admission::Now
            || led.added == follows.added
        {
            continue;
        }
        let (more, at) =
            if led.added > follows.added { (led, &mut at_old) } else { (follows, &mut at_new) };
        let cost = Cost::up_to(led.added.abs_diff(follows.added));
        let deduplication = Deduplication::Unneeded;
        at.push(Charge {
            operation: Operation::Refund { cost, position: more.position, id, deduplication },
            ..*charge
        });
    }
    (at_old, at_new)
}

/// Merges both owners' readings of admitted charges. Returns the limits and subjects for which both
/// owners opened different windows.
fn merge_readings<'a>(
    now: Timestamp,
    moved: &[Charge<'a>],
    moving: &[usize],
    followed: &Readings,
    readings: &mut Readings,
) -> Vec<CellKey<'a>> {
    let mut apart = Vec::new();
    for ((index, charge), follows) in moving.iter().zip(moved).zip(followed.iter()) {
        let led = readings[*index];
        readings[*index] = match common_window(charge, &led, follows) {
            Some(window) => {
                let reserved = led.reserved.max(follows.reserved);
                let reading = Reading { reserved, ..reading_of(charge, &window, now) };
                apart.push(CellKey { limit: charge.limit, subject: charge.subject });
                reading
            }
            None if holds_alone(charge, &led, follows) => led,
            None if holds_alone(charge, follows, &led) => *follows,
            // The owner with less room has counted more.
            None if led.added > follows.added => *follows,
            None if led.added < follows.added => led,
            None if counted_more(charge, follows, &led) => *follows,
            None if counted_more(charge, &led, follows) => led,
            // Both readings have the same status, but one owner may never have had the refunded
            // charge.
            None => Reading { refunded: led.refunded.max(follows.refunded), ..led },
        };
    }
    apart
}

/// If each owner opened a fixed window of its own, returns the earlier of the two windows, and
/// otherwise `None`. `led` and `follows` are the readings of the old and of the new owner. Both
/// owners continue in the earlier window. A node that calls only one owner opened this window, and
/// that node's clients were sent the end of this window.
fn common_window(charge: &Charge<'_>, led: &Reading, follows: &Reading) -> Option<Cell> {
    let is_taken = charge.operation.as_charge().is_some_and(|(cost, _)| cost != Cost::PEEK);
    let is_fixed = matches!(charge.limit.algorithm(), Algorithm::FixedWindow(_));
    if !is_taken || !is_fixed || led.full_reset_at == follows.full_reset_at {
        return None;
    }
    let resets_at = led.full_reset_at.min(follows.full_reset_at);
    let used = led.used.max(follows.used);
    Some(Cell::FixedWindow(fixed_window::State { used, resets_at }))
}

/// Returns whether the owner with the reading `one` has counted more than the owner with the
/// reading `other`. Each of the two owners may have counted more, but nodes that use only the old
/// map and nodes in cutover never run at the same time.
fn counted_more(charge: &Charge<'_>, one: &Reading, other: &Reading) -> bool {
    if one.used != other.used {
        return one.used > other.used;
    }
    // Units that were reserved in a window that has ended are not part of the usage of the current
    // window.
    if one.reserved != other.reserved {
        return one.reserved > other.reserved;
    }
    match charge.limit.algorithm() {
        // Clients were sent the end of the window that opened first.
        Algorithm::FixedWindow(_) if one.used > 0 => one.full_reset_at < other.full_reset_at,
        // A window stays open when all its units are refunded.
        Algorithm::FixedWindow(_) => {
            let is_open = |reading: &Reading| reading.found == StoredState::Present;
            is_open(one) && (!is_open(other) || one.full_reset_at < other.full_reset_at)
        }
        // Usage is reported in whole units, so usage that declines gradually can differ by less
        // than one unit.
        _ => (one.full_reset_at, one.fits_again) > (other.full_reset_at, other.fits_again),
    }
}

/// Returns whether `charge` settles, extends or renews a reservation or permit that only the owner
/// with the reading `one` had. `other` is the reading of the other owner.
fn holds_alone(charge: &Charge<'_>, one: &Reading, other: &Reading) -> bool {
    let is_reservation = matches!(
        charge.operation,
        Operation::Settle { .. } | Operation::Extend { .. } | Operation::Renew { .. }
    );
    is_reservation && one.admission == Admission::Now && other.admission != Admission::Now
}

/// Returns a peek with the limit, the subject and the cost of `charge`.
fn peek_of<'a>(charge: &Charge<'a>) -> Charge<'a> {
    match charge.operation {
        Operation::Charge { cost, .. } | Operation::Reserve { cost, .. } => {
            Charge { operation: Operation::Peek { cost }, ..*charge }
        }
        _ => *charge,
    }
}

/// Returns the reading of an admitted charge that is counted in `cell`.
fn reading_of(charge: &Charge<'_>, cell: &Cell, now: Timestamp) -> Reading {
    let Some((cost, _)) = charge.operation.as_charge() else { return Reading::default() };
    Reading { admission: Admission::Now, ..assess(Some(cell), charge.limit, cost, now) }
}

/// Returns whether one of `charges` was refused.
fn is_refused(charges: &[Charge<'_>], readings: &Readings) -> bool {
    let has_charges = |charge: &Charge<'_>| charge.operation.as_charge().is_some();
    charges
        .iter()
        .zip(readings.iter())
        .any(|(charge, it)| has_charges(charge) && it.admission != Admission::Now)
}
