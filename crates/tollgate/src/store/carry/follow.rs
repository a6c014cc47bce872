//! While nodes follow: the old owners decide, and the new ones are charged what they admit.

use std::sync::atomic::Ordering;

use tollgate_core::algo::fixed_window;
use tollgate_core::{
    Algorithm, Ask, Cell, Cells, Charge, Cost, Fit, Found, Place, Reading, Readings, Refusals,
    Repeats, Store, StoreError, Timestamp, assess,
};

use super::{Carry, Phase};
use crate::store::join::both;

impl<S: Cells + 'static> Carry<S> {
    /// Charges the old owners, and what they admit the new owners of `moving` too.
    ///
    /// An old owner that does not answer leaves the call without an answer, and so does a new one
    /// that was to forget. Dropped before both owners have answered, it has the next decision on
    /// what moves make the new one whole first.
    pub(super) async fn follow(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        moving: &[usize],
    ) -> Result<Readings, StoreError> {
        let told: Vec<_> = moving.iter().map(|place| charges[*place]).collect();
        let owners = (&self.before, &self.after);
        self.arrivals.bring(now, Phase::Following as u64, owners, &told).await;
        let changes = told.iter().any(|charge| !charge.ask.only_reads());
        let lag = Lag { carry: self, charges: if changes { &told } else { &[] } };
        let takes = charges.iter().any(|charge| charge.ask.taken().is_some());
        let (mut readings, followed) = if changes && !takes {
            // Nothing here can be refused. The old owner may give back unheard: the new one is
            // asked whatever it answers, since no join makes it know of less.
            let led = self.before.apply(now, charges);
            let (led, followed) = both(led, self.after.apply(now, &told)).await;
            (led?, followed)
        } else {
            let mut readings = self.before.apply(now, charges).await?;
            if !changes || is_refused(charges, &readings) {
                lag.ends();
                self.look_at_both(now, &told, moving, &mut readings).await;
                return Ok(readings);
            }
            (readings, self.after.apply(now, &told).await)
        };
        let followed = match followed {
            Ok(followed) => followed,
            // It would come back with what the new owner still has.
            Err(reason) if told.iter().any(|charge| charge.ask == Ask::Forget) => {
                return Err(reason);
            }
            Err(_) => return Ok(readings),
        };
        let made_one = if is_refused(&told, &followed) {
            let given_back = self.give_back(now, charges, moving, &mut readings).await;
            for ((place, charge), follows) in moving.iter().zip(&told).zip(followed.iter()) {
                let led = &mut readings[*place];
                // What nodes with the old map charged, the new owner may not have heard of.
                if follows.fit != Fit::Now || !heard_more(charge, led, follows) {
                    *led = *follows;
                }
            }
            given_back
        } else {
            let (more_at_old, more_at_new) = surplus(&told, moving, &readings, &followed);
            let apart = meet(now, &told, moving, &followed, &mut readings);
            let made_even = self.take_back(now, &more_at_old, &more_at_new).await;
            made_even.and(self.make_one(now, &apart).await)
        };
        if made_one.is_ok() {
            lag.ends();
        }
        Ok(readings)
    }

    /// Has what nothing was charged for tell what the new owner has heard and the old one has not.
    async fn look_at_both(
        &self,
        now: Timestamp,
        told: &[Charge<'_>],
        moving: &[usize],
        readings: &mut Readings,
    ) {
        let looks: Vec<_> = told.iter().map(look_of).collect();
        if looks.iter().any(|charge| !charge.ask.only_reads()) {
            return;
        }
        let Ok(seen) = self.after.apply(now, &looks).await else { return };
        for ((place, charge), seen) in moving.iter().zip(told).zip(seen.iter()) {
            let led = &mut readings[*place];
            if heard_more(charge, seen, led) {
                *led = *seen;
            }
        }
    }

    /// Gives back at each owner what it alone took beyond a reservation.
    async fn take_back(
        &self,
        now: Timestamp,
        at_old: &[Charge<'_>],
        at_new: &[Charge<'_>],
    ) -> Result<(), StoreError> {
        if at_old.is_empty() && at_new.is_empty() {
            return Ok(());
        }
        let (old, new) = both(self.before.apply(now, at_old), self.after.apply(now, at_new)).await;
        old.and(new).map(drop)
    }

    /// Has both owners go on in the same windows, with what is held of them: one that counts what
    /// it does not know to be held could not let go of it.
    async fn make_one(&self, now: Timestamp, places: &[Place<'_>]) -> Result<(), StoreError> {
        if places.is_empty() {
            return Ok(());
        }
        let (led, followed) =
            both(self.before.cells(now, places), self.after.cells(now, places)).await;
        let held = |cells: Vec<Option<Cell>>| -> Vec<_> {
            let held = places.iter().zip(cells);
            held.filter_map(|(place, cell)| Some((*place, cell?))).collect()
        };
        let (led, followed) = (held(led?), held(followed?));
        let (before, after) =
            both(self.before.join(now, &followed), self.after.join(now, &led)).await;
        before.and(after)
    }

    /// Gives back at the old owners what they admitted and a new one did not, and makes the
    /// readings say so.
    async fn give_back(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        moving: &[usize],
        readings: &mut Readings,
    ) -> Result<(), StoreError> {
        let (mut refunds, mut places) = (Vec::new(), Vec::new());
        for (place, charge) in charges.iter().enumerate() {
            let owner = if moving.contains(&place) { Owner::Left } else { Owner::Stays };
            if let Some(ask) = undoing(charge, &readings[place], owner) {
                refunds.push(Charge { ask, ..*charge });
                places.push(place);
            }
        }
        let given_back = self.before.apply(now, &refunds).await?;
        for (place, after) in places.into_iter().zip(given_back.iter()) {
            // It stands as the refund found it, and would fit as it fitted.
            let taken = &mut readings[place];
            *taken =
                Reading { used: after.used, whole_at: after.whole_at, held: after.held, ..*taken };
            taken.again = Fit::Now;
        }
        Ok(())
    }
}

/// Charges that an old owner may have counted and the new one not: unless it [ends](Self::ends),
/// they are counted as lagging, and their cells are brought along once more.
struct Lag<'a, S> {
    carry: &'a Carry<S>,
    charges: &'a [Charge<'a>],
}

impl<S> Lag<'_, S> {
    /// Both owners know the same.
    fn ends(mut self) {
        self.charges = &[];
    }
}

impl<S> Drop for Lag<'_, S> {
    fn drop(&mut self) {
        if !self.charges.is_empty() {
            self.carry.arrivals.forget(self.charges);
            self.carry.lagging.fetch_add(self.charges.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Who decides on a subject next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Another one.
    Left,
    /// The same.
    Stays,
}

/// What undoes `charge`, which was read as `reading`, at the owner that admitted it before another
/// one refused.
fn undoing(charge: &Charge<'_>, reading: &Reading, owner: Owner) -> Option<Ask> {
    let (cost, _) = charge.ask.taken()?;
    if cost == Cost::PEEK || charge.limit.refusals() == Refusals::Counted {
        return None;
    }
    // A window that was opened for nothing is none. Who refuses knows all that was used; of a
    // subject that stays nobody does but its owner.
    if owner == Owner::Left && reading.used == cost.get() {
        return Some(Ask::Forget);
    }
    charge.ask.undone(reading.mark)
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
        let Ask::Settle { id, .. } = charge.ask else { continue };
        if led.fit != Fit::Now || follows.fit != Fit::Now || led.added == follows.added {
            continue;
        }
        let (more, at) =
            if led.added > follows.added { (led, &mut at_old) } else { (follows, &mut at_new) };
        let cost = Cost::up_to(led.added.abs_diff(follows.added));
        let repeats = Repeats::Impossible;
        at.push(Charge { ask: Ask::Refund { cost, mark: more.mark, id, repeats }, ..*charge });
    }
    (at_old, at_new)
}

/// Has readings of admitted charges tell what both owners know; the places of which each opened a
/// window of its own.
fn meet<'a>(
    now: Timestamp,
    told: &[Charge<'a>],
    moving: &[usize],
    followed: &Readings,
    readings: &mut Readings,
) -> Vec<Place<'a>> {
    let mut apart = Vec::new();
    for ((place, charge), follows) in moving.iter().zip(told).zip(followed.iter()) {
        let led = readings[*place];
        readings[*place] = match window_of_both(charge, &led, follows) {
            Some(window) => {
                let held = led.held.max(follows.held);
                let reading = Reading { held, ..reading_of(charge, &window, now) };
                apart.push(Place { limit: charge.limit, subject: charge.subject });
                reading
            }
            None if holds_alone(charge, &led, follows) => led,
            None if holds_alone(charge, follows, &led) => *follows,
            // Who had less room knows of more.
            None if led.added > follows.added => *follows,
            None if led.added < follows.added => led,
            None if heard_more(charge, follows, &led) => *follows,
            None if heard_more(charge, &led, follows) => led,
            // They stand alike, and one of them may never have had what was given back.
            None => Reading { given_back: led.given_back.max(follows.given_back), ..led },
        };
    }
    apart
}

/// The fixed window that is both owners', where they opened one each: a node that knows one owner
/// only opened it there first, and its clients were told when it ends.
fn window_of_both(charge: &Charge<'_>, led: &Reading, follows: &Reading) -> Option<Cell> {
    let is_taken = charge.ask.taken().is_some_and(|(cost, _)| cost != Cost::PEEK);
    let is_fixed = matches!(charge.limit.algorithm(), Algorithm::FixedWindow(_));
    if !is_taken || !is_fixed || led.whole_at == follows.whole_at {
        return None;
    }
    let resets_at = led.whole_at.min(follows.whole_at);
    let used = led.used.max(follows.used);
    Some(Cell::FixedWindow(fixed_window::State { used, resets_at }))
}

/// Whether one owner knows of more than the other. Each may have heard what the other has not: nodes
/// that know the old map only, and nodes that lead, are never there at the same time.
fn heard_more(charge: &Charge<'_>, one: &Reading, other: &Reading) -> bool {
    if one.used != other.used {
        return one.used > other.used;
    }
    // What is held of a window that is over is not used in this one.
    if one.held != other.held {
        return one.held > other.held;
    }
    match charge.limit.algorithm() {
        // The window that opened first is the one that its clients were told of.
        Algorithm::FixedWindow(_) if one.used > 0 => one.whole_at < other.whole_at,
        // It stays open when all is given back.
        Algorithm::FixedWindow(_) => {
            let is_open = |reading: &Reading| reading.found == Found::State;
            is_open(one) && (!is_open(other) || one.whole_at < other.whole_at)
        }
        // What is used is told in whole units, of which a fading part may hide one.
        _ => (one.whole_at, one.again) > (other.whole_at, other.again),
    }
}

/// Whether of both owners the one alone held what is settled or put off.
fn holds_alone(charge: &Charge<'_>, one: &Reading, other: &Reading) -> bool {
    let asks_for_hold =
        matches!(charge.ask, Ask::Settle { .. } | Ask::Extend { .. } | Ask::Renew { .. });
    asks_for_hold && one.fit == Fit::Now && other.fit != Fit::Now
}

/// The same question, without the taking.
fn look_of<'a>(charge: &Charge<'a>) -> Charge<'a> {
    match charge.ask {
        Ask::Take { cost, .. } | Ask::Reserve { cost, .. } => {
            Charge { ask: Ask::Look { cost }, ..*charge }
        }
        _ => *charge,
    }
}

/// What an admitted take is told of `cell`, in which it is counted.
fn reading_of(charge: &Charge<'_>, cell: &Cell, now: Timestamp) -> Reading {
    let Some((cost, _)) = charge.ask.taken() else { return Reading::default() };
    Reading { fit: Fit::Now, ..assess(Some(cell), charge.limit, cost, now) }
}

/// Whether one of `charges` was refused.
fn is_refused(charges: &[Charge<'_>], readings: &Readings) -> bool {
    let takes = |charge: &Charge<'_>| charge.ask.taken().is_some();
    charges.iter().zip(readings.iter()).any(|(charge, it)| takes(charge) && it.fit != Fit::Now)
}
