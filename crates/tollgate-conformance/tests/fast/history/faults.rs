//! Stores with one fault each, which change the state or the answers.

use tollgate_conformance::Cells;
use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Admission, Algorithm, Charge, ChargePosition, Cost, DecisionSource, Deduplication, Limit,
    Millis, Operation, Reading, Readings, Store, StoreError, StoredState, Timestamp,
};

use super::at_once;

pub(crate) type Answer = Result<Readings, StoreError>;

/// The function that a faulty store executes instead of the correct function.
pub(crate) type Fault = fn(&Cells, Timestamp, &[Charge<'_>]) -> Answer;

/// A store that is correct except for one fault.
pub(crate) struct Broken {
    pub(crate) cells: Cells,
    pub(crate) fault: Fault,
}

impl Store for Broken {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
        (self.fault)(&self.cells, now, charges)
    }
}

/// A store that loses answers, like a store behind a faulty network. Half of the calls with a lost
/// answer were executed.
#[derive(Default)]
pub(crate) struct Lossy(Cells);

impl Store for Lossy {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
        let draw = charges.iter().fold(now.as_millis(), |draw, charge| {
            charge
                .subject
                .as_bytes()
                .iter()
                .fold(draw, |draw, byte| draw * 31 % 8191 + u64::from(*byte))
        });
        if draw % 10 == 0 {
            return Err(StoreError::TimedOut);
        }
        let answers = self.0.apply(now, charges).await;
        if draw % 10 == 1 { Err(StoreError::TimedOut) } else { answers }
    }
}

pub(crate) fn sound(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    at_once(cells.apply(now, charges))
}

/// Returns whether an intermittent fault occurs in this call.
fn strikes(now: Timestamp, charges: &[Charge<'_>]) -> bool {
    let id = charges.iter().find_map(|charge| match charge.operation {
        Operation::Charge { id, .. } | Operation::Refund { id, .. } => Some(id.0 as u64),
        _ => None,
    });
    (now.as_millis() + id.unwrap_or(0)).is_multiple_of(5)
}

fn is_take(charge: &Charge<'_>) -> bool {
    matches!(charge.operation, Operation::Charge { cost, .. } if cost != Cost::PEEK)
}

fn is_peek(charge: &Charge<'_>) -> bool {
    matches!(charge.operation, Operation::Charge { cost: Cost::PEEK, .. })
}

/// Returns the answer of a correct store. If the fault occurs in this call, `change` modifies every
/// reading.
fn answers(
    cells: &Cells,
    now: Timestamp,
    charges: &[Charge<'_>],
    change: impl Fn(&Charge<'_>, &mut Reading),
) -> Answer {
    let mut answers = sound(cells, now, charges)?;
    if strikes(now, charges) {
        charges
            .iter()
            .zip(answers.iter_mut())
            .for_each(|(charge, reading)| change(charge, reading));
    }
    Ok(answers)
}

pub(crate) fn admits_one_more(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |charge, reading| {
        if is_take(charge) {
            (reading.admission, reading.fits_again) = (Admission::Now, Admission::Now);
        }
    })
}

pub(crate) fn wobbles(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |_, reading| {
        reading.full_reset_at = reading.full_reset_at.after(Millis::new(1));
    })
}

pub(crate) fn loses_updates(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let answers = sound(cells, now, charges)?;
    if strikes(now, charges) && answers.all_admitted() {
        give_back(cells, now, charges, &answers);
    }
    Ok(answers)
}

fn give_back(cells: &Cells, now: Timestamp, charges: &[Charge<'_>], answers: &Readings) {
    for (charge, reading) in charges.iter().zip(answers.iter()) {
        if let Operation::Charge { cost, id } = charge.operation {
            let (position, deduplication) = (reading.position, Deduplication::Unneeded);
            let operation = Operation::Refund { cost, position, id, deduplication };
            sound(cells, now, &[Charge { operation, ..*charge }]).unwrap();
        }
    }
}

pub(crate) fn charges_refusals(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let answers = sound(cells, now, charges)?;
    if !answers.all_admitted() {
        for (charge, _) in
            charges.iter().zip(&*answers).filter(|(_, answers)| answers.admission == Admission::Now)
        {
            sound(cells, now, &[*charge]).unwrap();
        }
    }
    Ok(answers)
}

/// Returns the same charges with other operations.
fn mapped<'a>(charges: &[Charge<'a>], map: impl Fn(Operation) -> Operation) -> Vec<Charge<'a>> {
    charges.iter().map(|charge| Charge { operation: map(charge.operation), ..*charge }).collect()
}

pub(crate) fn refunds_twice(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let unguarded = mapped(charges, |operation| match operation {
        Operation::Refund { cost, position, id, .. } => {
            Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded }
        }
        other => other,
    });
    sound(cells, now, &unguarded)
}

pub(crate) fn refunds_later(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let open = charges.iter().map(|charge| {
        let look = Charge { operation: Operation::Peek { cost: Cost::PEEK }, ..*charge };
        sound(cells, now, &[look]).unwrap()[0].full_reset_at
    });
    let marks = charges.iter().zip(open).map(|(charge, open)| match charge.operation {
        Operation::Refund { cost, id, deduplication, .. } => {
            let position = ChargePosition(open.as_millis());
            Charge { operation: Operation::Refund { cost, position, id, deduplication }, ..*charge }
        }
        _ => *charge,
    });
    sound(cells, now, &marks.collect::<Vec<_>>())
}

pub(crate) fn gives_back_more(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let more = mapped(charges, |operation| match operation {
        Operation::Refund { cost, position, id, deduplication } => {
            Operation::Refund { cost: cost.plus(Cost::ONE), position, id, deduplication }
        }
        other => other,
    });
    sound(cells, now, &more)
}

/// Reports the requested refund, and refunds twice as much.
pub(crate) fn hides_refunds(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let answers = refunds_twice(cells, now, charges);
    if charges.iter().any(|charge| matches!(charge.operation, Operation::Refund { .. })) {
        refunds_twice(cells, now, charges)?;
    }
    answers
}

pub(crate) fn refuses_with_room(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |_, reading| {
        if reading.admission != Admission::Now {
            reading.used = 0;
        }
    })
}

pub(crate) fn passes_the_quota(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |charge, reading| reading.used = charge.limit.capacity() + 1)
}

pub(crate) fn looks_back(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |charge, reading| {
        if is_peek(charge) {
            reading.used = reading.used.saturating_sub(charge.limit.capacity() / 2);
        }
    })
}

pub(crate) fn sees_half(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |charge, reading| {
        if is_peek(charge) {
            reading.used = reading.used.saturating_sub(1);
        }
    })
}

pub(crate) fn finds_nothing(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |charge, reading| {
        if is_peek(charge) {
            (reading.used, reading.found) = (0, StoredState::Missing);
        }
    })
}

/// Ends windows after half of their length, and uses another store in every second half.
pub(crate) fn restarts_early(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let half = |charge: &Charge<'_>| now.as_millis() / (charge.limit.window().get() / 2) % 2;
    let aside = |charge: &Charge<'_>| Limit::new("aside", *charge.limit.algorithm()).unwrap();
    let limits: Vec<_> = charges.iter().map(aside).collect();
    let charges = charges.iter().zip(&limits).map(|(charge, aside)| {
        let limit = if half(charge) == 0 { charge.limit } else { aside };
        Charge { limit, ..*charge }
    });
    sound(cells, now, &charges.collect::<Vec<_>>())
}

pub(crate) fn ends_late(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |charge, reading| {
        let late = charge.limit.window().get() * 2 + charge.limit.skew_max().get();
        reading.full_reset_at = now.after(Millis::new(late));
    })
}

pub(crate) fn charges_errors_twice(
    cells: &Cells,
    now: Timestamp,
    charges: &[Charge<'_>],
) -> Answer {
    let answers = sound(cells, now, charges);
    if strikes(now, charges) && charges.iter().any(is_take) {
        sound(cells, now, charges)?;
        return Err(StoreError::TimedOut);
    }
    answers
}

pub(crate) fn promises_the_past(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    answers(cells, now, charges, |_, reading| {
        if reading.admission != Admission::Now {
            reading.admission = Admission::At(now);
        }
    })
}

pub(crate) fn leaves_one_out(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    Ok(sound(cells, now, charges)?.iter().copied().skip(1).collect())
}

pub(crate) fn stands_in_for_all(_: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let readings = charges.iter().map(|_| Reading { full_reset_at: now, ..Reading::default() });
    let readings: Readings = readings.collect();
    Ok(readings.with_source(DecisionSource::Fallback(StoreError::Unavailable)))
}

pub(crate) fn remembers_to_admit(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    Ok(sound(cells, now, charges)?.with_source(DecisionSource::DenyCache))
}

/// Decides with twice the quota, and reports fewer units than were counted.
pub(crate) fn is_lax(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let limits: Vec<_> = charges.iter().map(|charge| doubled(charge.limit)).collect();
    let lax = charges.iter().zip(&limits).map(|(charge, limit)| Charge { limit, ..*charge });
    let mut answers = sound(cells, now, &lax.collect::<Vec<_>>())?;
    for (reading, charge) in answers.iter_mut().zip(charges) {
        reading.used = match charge.operation {
            Operation::Charge { cost, .. } if reading.admission == Admission::Now => cost.get(),
            _ => charge.limit.capacity(),
        };
    }
    Ok(answers)
}

fn doubled(limit: &Limit) -> Limit {
    let (quota, window) = (limit.capacity() * 2, limit.window());
    let algorithm = match limit.algorithm() {
        Algorithm::FixedWindow(of) => {
            FixedWindow::new(quota, window, of.anchor()).map(Algorithm::FixedWindow)
        }
        Algorithm::SlidingWindow(of) => {
            SlidingWindow::new(quota, window, of.precision()).map(Algorithm::SlidingWindow)
        }
        Algorithm::TwoBucket(_) => TwoBucket::new(quota, window).map(Algorithm::TwoBucket),
        Algorithm::SlidingLog(_) => SlidingLog::new(quota, window).map(Algorithm::SlidingLog),
        Algorithm::TokenBucket(of) => {
            TokenBucket::new(of.quota(), of.window(), quota).map(Algorithm::TokenBucket)
        }
        Algorithm::Concurrency(_) => Concurrency::new(quota, window).map(Algorithm::Concurrency),
    };
    Limit::new(limit.name(), algorithm.unwrap()).unwrap()
}
