//! One call over several homes: take at each, and give back unless all admit.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{
    Charge, Cost, Fit, Reading, Readings, Refusals, Source, StoreError, Timestamp,
};

use super::Homes;
use crate::store::join::join_all;

/// Takes at every home, and gives back if not all admit.
pub(super) async fn span<H: Homes>(
    homes: &H,
    now: Timestamp,
    charges: &[Charge<'_>],
    stranded: &AtomicU64,
) -> Result<Readings, StoreError> {
    let parts = parts_of(homes, charges);
    let mut calls = Vec::with_capacity(parts.len());
    for part in &parts {
        calls.push(homes.apply_at(part.home, now, &part.charges));
    }
    let answers = join_all(calls).await;
    let mut joined = Joined::new(charges.len());
    let mut held = Vec::new();
    let mut error = None;
    for (part, answer) in parts.iter().zip(answers) {
        match answer {
            Ok(readings) if readings.len() == part.charges.len() => {
                if part.admitted(&readings) {
                    held.push(part);
                }
                joined.put(part, &readings);
            }
            Ok(_) => error = error.or(Some(StoreError::Corrupt)),
            Err(reason) => error = error.or(Some(reason)),
        }
    }
    if held.len() < parts.len() {
        let counted = if error.is_some() { Counted::GiveBack } else { Counted::Keep };
        give_back(homes, now, &held, counted, &mut joined, stranded).await;
    }
    error.map_or_else(|| Ok(joined.into_readings()), Err)
}

/// What one home has of a call.
struct Part<'a> {
    home: usize,
    charges: Vec<Charge<'a>>,
    /// Where each charge stands in the call.
    places: Vec<usize>,
}

fn parts_of<'a>(homes: &impl Homes, charges: &[Charge<'a>]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for (place, charge) in charges.iter().enumerate() {
        let home = homes.home(charge.subject);
        match parts.iter_mut().find(|part| part.home == home) {
            Some(part) => {
                part.charges.push(*charge);
                part.places.push(place);
            }
            None => parts.push(Part { home, charges: vec![*charge], places: vec![place] }),
        }
    }
    parts
}

impl Part<'_> {
    /// Whether this home carried its takes out.
    fn admitted(&self, readings: &Readings) -> bool {
        let refused = |(charge, reading): (&Charge<'_>, &Reading)| {
            charge.ask.taken().is_some() && reading.fit != Fit::Now
        };
        !self.charges.iter().zip(readings.iter()).any(refused)
    }
}

/// What becomes of limits that count refusals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// The call was refused, and what they took counts it.
    Keep,
    /// The call has no answer, so there is nothing to count.
    GiveBack,
}

/// Gives back what the parts in `held` took, and makes their readings say so.
async fn give_back<H: Homes>(
    homes: &H,
    now: Timestamp,
    held: &[&Part<'_>],
    counted: Counted,
    joined: &mut Joined,
    stranded: &AtomicU64,
) {
    let mut refunds = Vec::with_capacity(held.len());
    for part in held {
        let mut refund = Part { home: part.home, charges: Vec::new(), places: Vec::new() };
        for (charge, place) in part.charges.iter().zip(&part.places) {
            let counts = charge.limit.refusals() == Refusals::Counted;
            if !takes(charge) || (counts && counted == Counted::Keep) {
                continue;
            }
            if let Some(ask) = charge.ask.undone(joined.0[*place].mark) {
                refund.charges.push(Charge { ask, ..*charge });
                refund.places.push(*place);
            }
        }
        if !refund.charges.is_empty() {
            refunds.push(refund);
        }
    }
    let mut calls = Vec::with_capacity(refunds.len());
    for refund in &refunds {
        calls.push(homes.apply_at(refund.home, now, &refund.charges));
    }
    for (refund, answer) in refunds.iter().zip(join_all(calls).await) {
        match answer {
            Ok(readings) => joined.undo(refund, &readings),
            Err(_) => {
                stranded.fetch_add(refund.charges.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

/// The readings of the whole call, as the parts come in.
struct Joined(Vec<Reading>, Source);

impl Joined {
    fn new(charges: usize) -> Self {
        Self(vec![Reading::default(); charges], Source::Store)
    }

    fn put(&mut self, part: &Part<'_>, readings: &Readings) {
        for (place, reading) in part.places.iter().zip(readings.iter()) {
            self.0[*place] = *reading;
        }
        if self.1 == Source::Store {
            self.1 = readings.source();
        }
    }

    /// What was given back stands as the refund found it, and would fit as it fitted.
    fn undo(&mut self, refund: &Part<'_>, readings: &Readings) {
        for (place, after) in refund.places.iter().zip(readings.iter()) {
            let taken = &mut self.0[*place];
            let Reading { used, whole_at, held, .. } = *after;
            *taken = Reading { used, whole_at, held, again: Fit::Now, ..*taken };
        }
    }

    fn into_readings(self) -> Readings {
        self.0.into_iter().collect::<Readings>().with_source(self.1)
    }
}

/// Whether a charge takes units: neither a peek nor a refund.
pub(super) fn takes(charge: &Charge<'_>) -> bool {
    charge.ask.taken().is_some_and(|(cost, _)| cost != Cost::PEEK)
}
