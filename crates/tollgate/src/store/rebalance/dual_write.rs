//! While nodes follow: the old owners decide, and the new ones are charged what they admit.

use std::sync::atomic::Ordering;

use tollgate_core::algo::fixed_window;
use tollgate_core::{
    Admission, Algorithm, Cell, CellKey, CellTransfer, Charge, Cost, Deduplication, Operation,
    Reading, Readings, Refusals, Store, StoreError, StoredState, Timestamp, assess,
};

use super::{Phase, Rebalance};
use crate::store::join::join_pair;

impl<S: CellTransfer + 'static> Rebalance<S> {
    /// Charges the old owners, and what they admit the new owners of `moving` too.
    ///
    /// An old owner that does not answer leaves the call without an answer, and so does a new one
    /// that was to forget. Dropped before both owners have answered, it has the next decision on
    /// what moves make the new one whole first.
    pub(super) async fn dual_write(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        moving: &[usize],
    ) -> Result<Readings, StoreError> {
        let told: Vec<_> = moving.iter().map(|place| charges[*place]).collect();
        let owners = (&self.before, &self.after);
        self.transfer.transfer(now, Phase::DualWrite as u64, owners, &told).await;
        let changes = told.iter().any(|charge| !charge.operation.is_read_only());
        let divergence = Divergence { rebalance: self, charges: if changes { &told } else { &[] } };
        let takes = charges.iter().any(|charge| charge.operation.as_charge().is_some());
        let (mut readings, followed) = if changes && !takes {
            // Nothing here can be refused. The old owner may give back unheard: the new one is
            // asked whatever it answers, since no join makes it know of less.
            let led = self.before.apply(now, charges);
            let (led, followed) = join_pair(led, self.after.apply(now, &told)).await;
            (led?, followed)
        } else {
            let mut readings = self.before.apply(now, charges).await?;
            if !changes || is_refused(charges, &readings) {
                divergence.ends();
                self.peek_both(now, &told, moving, &mut readings).await;
                return Ok(readings);
            }
            (readings, self.after.apply(now, &told).await)
        };
        let followed = match followed {
            Ok(followed) => followed,
            // It would come back with what the new owner still has.
            Err(reason) if told.iter().any(|charge| charge.operation == Operation::Reset) => {
                return Err(reason);
            }
            Err(_) => return Ok(readings),
        };
        let made_one = if is_refused(&told, &followed) {
            let refunded = self.refund_unmatched(now, charges, moving, &mut readings).await;
            for ((place, charge), follows) in moving.iter().zip(&told).zip(followed.iter()) {
                let led = &mut readings[*place];
                // What nodes with the old map charged, the new owner may not have heard of.
                if follows.admission != Admission::Now || !counted_more(charge, led, follows) {
                    *led = *follows;
                }
            }
            refunded
        } else {
            let (more_at_old, more_at_new) = surplus(&told, moving, &readings, &followed);
            let apart = merge_readings(now, &told, moving, &followed, &mut readings);
            let made_even = self.refund_surplus(now, &more_at_old, &more_at_new).await;
            made_even.and(self.reconcile(now, &apart).await)
        };
        if made_one.is_ok() {
            divergence.ends();
        }
        Ok(readings)
    }

    /// Has what nothing was charged for tell what the new owner has heard and the old one has not.
    async fn peek_both(
        &self,
        now: Timestamp,
        told: &[Charge<'_>],
        moving: &[usize],
        readings: &mut Readings,
    ) {
        let looks: Vec<_> = told.iter().map(look_of).collect();
        if looks.iter().any(|charge| !charge.operation.is_read_only()) {
            return;
        }
        let Ok(seen) = self.after.apply(now, &looks).await else { return };
        for ((place, charge), seen) in moving.iter().zip(told).zip(seen.iter()) {
            let led = &mut readings[*place];
            if counted_more(charge, seen, led) {
                *led = *seen;
            }
        }
    }

    /// Gives back at each owner what it alone took beyond a reservation.
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
            join_pair(self.before.apply(now, at_old), self.after.apply(now, at_new)).await;
        old.and(new).map(drop)
    }

    /// Has both owners go on in the same windows, with what is held of them: one that counts what
    /// it does not know to be held could not let go of it.
    async fn reconcile(&self, now: Timestamp, places: &[CellKey<'_>]) -> Result<(), StoreError> {
        if places.is_empty() {
            return Ok(());
        }
        let (led, followed) =
            join_pair(self.before.cells(now, places), self.after.cells(now, places)).await;
        let held = |cells: Vec<Option<Cell>>| -> Vec<_> {
            let held = places.iter().zip(cells);
            held.filter_map(|(place, cell)| Some((*place, cell?))).collect()
        };
        let (led, followed) = (held(led?), held(followed?));
        let (before, after) =
            join_pair(self.before.join(now, &followed), self.after.join(now, &led)).await;
        before.and(after)
    }

    /// Gives back at the old owners what they admitted and a new one did not, and makes the
    /// readings say so.
    async fn refund_unmatched(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        moving: &[usize],
        readings: &mut Readings,
    ) -> Result<(), StoreError> {
        let (mut refunds, mut places) = (Vec::new(), Vec::new());
        for (place, charge) in charges.iter().enumerate() {
            let owner = if moving.contains(&place) { Owner::Moved } else { Owner::Same };
            if let Some(operation) = undo_of(charge, &readings[place], owner) {
                refunds.push(Charge { operation, ..*charge });
                places.push(place);
            }
        }
        let refunded = self.before.apply(now, &refunds).await?;
        for (place, after) in places.into_iter().zip(refunded.iter()) {
            // It stands as the refund found it, and would fit as it fitted.
            let taken = &mut readings[place];
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

/// Charges that an old owner may have counted and the new one not: unless it [ends](Self::ends),
/// they are counted as diverged, and their cells are brought along once more.
struct Divergence<'a, S> {
    rebalance: &'a Rebalance<S>,
    charges: &'a [Charge<'a>],
}

impl<S> Divergence<'_, S> {
    /// Both owners know the same.
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

/// Who decides on a subject next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Another one.
    Moved,
    /// The same.
    Same,
}

/// What undoes `charge`, which was read as `reading`, at the owner that admitted it before another
/// one refused.
fn undo_of(charge: &Charge<'_>, reading: &Reading, owner: Owner) -> Option<Operation> {
    let (cost, _) = charge.operation.as_charge()?;
    if cost == Cost::PEEK || charge.limit.refusals() == Refusals::Counted {
        return None;
    }
    // A window that was opened for nothing is none. Who refuses knows all that was used; of a
    // subject that stays nobody does but its owner.
    if owner == Owner::Moved && reading.used == cost.get() {
        return Some(Operation::Reset);
    }
    charge.operation.inverse(reading.position)
}

/// What gives back, at the old owners and at the new ones, what a settlement above its reservation
/// took there and the other owner, which knows of more, had no room for.
fn surplus<'a>(
    told: &[Charge<'a>],
    moving: &[usize],
    readings: &Readings,
    followed: &Readings,
) -> (Vec<Charge<'a>>, Vec<Charge<'a>>) {
    let (mut at_old, mut at_new) = (Vec::new(), Vec::new());
    for ((place, charge), follows) in moving.iter().zip(told).zip(followed.iter()) {
        let led = &readings[*place];
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

/// Has readings of admitted charges tell what both owners know; the places of which each opened a
/// window of its own.
fn merge_readings<'a>(
    now: Timestamp,
    told: &[Charge<'a>],
    moving: &[usize],
    followed: &Readings,
    readings: &mut Readings,
) -> Vec<CellKey<'a>> {
    let mut apart = Vec::new();
    for ((place, charge), follows) in moving.iter().zip(told).zip(followed.iter()) {
        let led = readings[*place];
        readings[*place] = match common_window(charge, &led, follows) {
            Some(window) => {
                let reserved = led.reserved.max(follows.reserved);
                let reading = Reading { reserved, ..reading_of(charge, &window, now) };
                apart.push(CellKey { limit: charge.limit, subject: charge.subject });
                reading
            }
            None if holds_alone(charge, &led, follows) => led,
            None if holds_alone(charge, follows, &led) => *follows,
            // Who had less room knows of more.
            None if led.added > follows.added => *follows,
            None if led.added < follows.added => led,
            None if counted_more(charge, follows, &led) => *follows,
            None if counted_more(charge, &led, follows) => led,
            // They stand alike, and one of them may never have had what was given back.
            None => Reading { refunded: led.refunded.max(follows.refunded), ..led },
        };
    }
    apart
}

/// The fixed window that is both owners', where they opened one each: a node that knows one owner
/// only opened it there first, and its clients were told when it ends.
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

/// Whether one owner knows of more than the other. Each may have heard what the other has not: nodes
/// that know the old map only, and nodes that lead, are never there at the same time.
fn counted_more(charge: &Charge<'_>, one: &Reading, other: &Reading) -> bool {
    if one.used != other.used {
        return one.used > other.used;
    }
    // What is held of a window that is over is not used in this one.
    if one.reserved != other.reserved {
        return one.reserved > other.reserved;
    }
    match charge.limit.algorithm() {
        // The window that opened first is the one that its clients were told of.
        Algorithm::FixedWindow(_) if one.used > 0 => one.full_reset_at < other.full_reset_at,
        // It stays open when all is given back.
        Algorithm::FixedWindow(_) => {
            let is_open = |reading: &Reading| reading.found == StoredState::Present;
            is_open(one) && (!is_open(other) || one.full_reset_at < other.full_reset_at)
        }
        // What is used is told in whole units, of which a fading part may hide one.
        _ => (one.full_reset_at, one.fits_again) > (other.full_reset_at, other.fits_again),
    }
}

/// Whether of both owners the one alone held what is settled or put off.
fn holds_alone(charge: &Charge<'_>, one: &Reading, other: &Reading) -> bool {
    let asks_for_hold = matches!(
        charge.operation,
        Operation::Settle { .. } | Operation::Extend { .. } | Operation::Renew { .. }
    );
    asks_for_hold && one.admission == Admission::Now && other.admission != Admission::Now
}

/// The same question, without the taking.
fn look_of<'a>(charge: &Charge<'a>) -> Charge<'a> {
    match charge.operation {
        Operation::Charge { cost, .. } | Operation::Reserve { cost, .. } => {
            Charge { operation: Operation::Peek { cost }, ..*charge }
        }
        _ => *charge,
    }
}

/// What an admitted take is told of `cell`, in which it is counted.
fn reading_of(charge: &Charge<'_>, cell: &Cell, now: Timestamp) -> Reading {
    let Some((cost, _)) = charge.operation.as_charge() else { return Reading::default() };
    Reading { admission: Admission::Now, ..assess(Some(cell), charge.limit, cost, now) }
}

/// Whether one of `charges` was refused.
fn is_refused(charges: &[Charge<'_>], readings: &Readings) -> bool {
    let takes = |charge: &Charge<'_>| charge.operation.as_charge().is_some();
    charges
        .iter()
        .zip(readings.iter())
        .any(|(charge, it)| takes(charge) && it.admission != Admission::Now)
}
