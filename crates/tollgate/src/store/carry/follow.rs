//! While nodes follow: the old owners decide, and the new ones are charged what they admit.

use std::sync::atomic::Ordering;

use tollgate_core::algo::fixed_window;
use tollgate_core::{
    Algorithm, Ask, Cell, Cells, Charge, Cost, Fit, Place, Reading, Readings, Refusals, Store,
    StoreError, Timestamp, assess,
};

use super::{Carry, Phase};

impl<S: Cells + 'static> Carry<S> {
    /// Charges the old owners, and what they admit the new owners of `moving` too.
    ///
    /// An old owner that does not answer leaves the call without an answer. Dropped before both
    /// owners have answered, it has the next decision on what moves make the new one whole first.
    pub(super) async fn follow(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        moving: &[usize],
    ) -> Result<Readings, StoreError> {
        let told: Vec<_> = moving.iter().map(|place| charges[*place]).collect();
        self.bring(now, Phase::Following, &told).await;
        let changes = told.iter().any(|charge| !charge.ask.only_reads());
        let lag = Lag { carry: self, charges: if changes { &told } else { &[] } };
        let mut readings = self.before.apply(now, charges).await?;
        if !changes || is_refused(charges, &readings) {
            lag.ends();
            self.look_at_both(now, &told, moving, &mut readings).await;
            return Ok(readings);
        }
        let Ok(followed) = self.after.apply(now, &told).await else { return Ok(readings) };
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
            let apart = meet(now, &told, moving, &followed, &mut readings);
            self.make_one(now, &apart).await
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

    /// Has both owners go on in the same windows.
    async fn make_one(
        &self,
        now: Timestamp,
        windows: &[(Place<'_>, Cell)],
    ) -> Result<(), StoreError> {
        if windows.is_empty() {
            return Ok(());
        }
        let before = self.before.join(now, windows).await;
        before.and(self.after.join(now, windows).await)
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

/// Has readings of admitted charges tell what both owners know; the windows that they have to be
/// told of, because each opened one of its own.
fn meet<'a>(
    now: Timestamp,
    told: &[Charge<'a>],
    moving: &[usize],
    followed: &Readings,
    readings: &mut Readings,
) -> Vec<(Place<'a>, Cell)> {
    let mut apart = Vec::new();
    for ((place, charge), follows) in moving.iter().zip(told).zip(followed.iter()) {
        let led = readings[*place];
        readings[*place] = match window_of_both(charge, &led, follows) {
            Some(window) => {
                let reading = reading_of(charge, &window, now);
                apart.push((Place { limit: charge.limit, subject: charge.subject }, window));
                reading
            }
            None if holds_alone(charge, &led, follows) => led,
            None if heard_more(charge, follows, &led) => *follows,
            None => led,
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
    match charge.limit.algorithm() {
        // The window that opened first is the one that its clients were told of.
        Algorithm::FixedWindow(_) => one.used > 0 && one.whole_at < other.whole_at,
        // What is used is told in whole units, of which a fading part may hide one.
        _ => (one.whole_at, one.again) > (other.whole_at, other.again),
    }
}

/// Whether of both owners the old one alone held what is settled or put off.
fn holds_alone(charge: &Charge<'_>, led: &Reading, follows: &Reading) -> bool {
    let asks_for_hold = matches!(charge.ask, Ask::Settle { .. } | Ask::Extend { .. });
    asks_for_hold && led.fit == Fit::Now && follows.fit != Fit::Now
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
