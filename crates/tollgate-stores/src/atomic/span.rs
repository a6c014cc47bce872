//! One call over several partitions. Every partition is charged, and the charges are refunded
//! unless all partitions admit the call.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{
    Admission, Charge, Cost, DecisionSource, Reading, Readings, Refusals, StoreError, Timestamp,
};

use super::Partitions;
use crate::call_error::may_have_run;
use crate::join::join_all;

/// Charges every partition, and refunds all charges if a partition refuses or does not answer.
pub(super) async fn span<H: Partitions>(
    partitions: &H,
    now: Timestamp,
    charges: &[Charge<'_>],
    unrefunded: &AtomicU64,
) -> Result<Readings, StoreError> {
    let parts = parts_of(partitions, charges);
    let mut calls = Vec::with_capacity(parts.len());
    for part in &parts {
        calls.push(partitions.apply_at(part.partition, now, &part.charges));
    }
    let answers = join_all(calls).await;
    let mut joined = Joined::new(charges.len());
    let mut reserved = Vec::new();
    let mut error = None;
    for (part, answer) in parts.iter().zip(answers) {
        match answer {
            Ok(readings) if readings.len() == part.charges.len() => {
                if part.admitted(&readings) {
                    reserved.push(part);
                }
                joined.put(part, &readings);
            }
            Ok(_) => error = Some(error_of_both(error, StoreError::Corrupt)),
            Err(reason) => error = Some(error_of_both(error, reason)),
        }
    }
    if reserved.len() < parts.len() {
        let counted = if error.is_some() { Counted::Refund } else { Counted::Keep };
        refund_admitted(partitions, now, &reserved, counted, &mut joined, unrefunded).await;
    }
    error.map_or_else(|| Ok(joined.into_readings()), Err)
}

/// Returns the error of a call of which several parts failed: the first error after which a
/// partition may have executed its part, or else the first error. After any other error, the caller
/// would charge that part again later.
fn error_of_both(first: Option<StoreError>, second: StoreError) -> StoreError {
    match first {
        Some(first) if may_have_run(first) || !may_have_run(second) => first,
        _ => second,
    }
}

/// The charges of a call that belong to one partition.
struct Part<'a> {
    partition: usize,
    charges: Vec<Charge<'a>>,
    /// The index of each charge in the call.
    indexes: Vec<usize>,
}

fn parts_of<'a>(partitions: &impl Partitions, charges: &[Charge<'a>]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for (index, charge) in charges.iter().enumerate() {
        let partition = partitions.partition(charge.subject);
        match parts.iter_mut().find(|part| part.partition == partition) {
            Some(part) => {
                part.charges.push(*charge);
                part.indexes.push(index);
            }
            None => parts.push(Part { partition, charges: vec![*charge], indexes: vec![index] }),
        }
    }
    parts
}

impl Part<'_> {
    /// Returns whether the partition admitted all charges of this part. `readings` is the
    /// partition's answer.
    fn admitted(&self, readings: &Readings) -> bool {
        let refused = |(charge, reading): (&Charge<'_>, &Reading)| {
            charge.operation.as_charge().is_some() && reading.admission != Admission::Now
        };
        !self.charges.iter().zip(readings.iter()).any(refused)
    }
}

/// Whether a call that was not admitted keeps its charges on limits that count refusals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// The call was refused. The charges are kept, because the limits count the refusal.
    Keep,
    /// The call failed. The charges are refunded, because there is no refusal to count.
    Refund,
}

/// Refunds the admitted charges of the parts in `reserved`. Replaces their readings in `joined` by
/// the status after the refund. `counted` states whether charges on limits that count refusals are
/// kept. `unrefunded` counts the charges that could not be refunded.
async fn refund_admitted<H: Partitions>(
    partitions: &H,
    now: Timestamp,
    reserved: &[&Part<'_>],
    counted: Counted,
    joined: &mut Joined,
    unrefunded: &AtomicU64,
) {
    let mut refunds = Vec::with_capacity(reserved.len());
    for part in reserved {
        let mut refund =
            Part { partition: part.partition, charges: Vec::new(), indexes: Vec::new() };
        for (charge, index) in part.charges.iter().zip(&part.indexes) {
            let counts = charge.limit.refusals() == Refusals::Counted;
            if !is_charge(charge) || (counts && counted == Counted::Keep) {
                continue;
            }
            if let Some(operation) = charge.operation.inverse(joined.0[*index].position) {
                refund.charges.push(Charge { operation, ..*charge });
                refund.indexes.push(*index);
            }
        }
        if !refund.charges.is_empty() {
            refunds.push(refund);
        }
    }
    let mut calls = Vec::with_capacity(refunds.len());
    for refund in &refunds {
        calls.push(partitions.apply_at(refund.partition, now, &refund.charges));
    }
    for (refund, answer) in refunds.iter().zip(join_all(calls).await) {
        match answer {
            Ok(readings) => joined.undo(refund, &readings),
            Err(_) => {
                unrefunded.fetch_add(refund.charges.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

/// The readings of the whole call. The readings of a partition are added when the partition
/// answers.
struct Joined(Vec<Reading>, DecisionSource);

impl Joined {
    fn new(charges: usize) -> Self {
        Self(vec![Reading::default(); charges], DecisionSource::Store)
    }

    fn put(&mut self, part: &Part<'_>, readings: &Readings) {
        for (index, reading) in part.indexes.iter().zip(readings.iter()) {
            self.0[*index] = *reading;
        }
        if self.1 == DecisionSource::Store {
            self.1 = readings.source();
        }
    }

    /// Changes the reading of each refunded charge to the status after the refund, in which the
    /// charge would fit again. `readings` is the answer to `refund`.
    fn undo(&mut self, refund: &Part<'_>, readings: &Readings) {
        for (index, after) in refund.indexes.iter().zip(readings.iter()) {
            let taken = &mut self.0[*index];
            let Reading { used, full_reset_at, reserved, .. } = *after;
            *taken =
                Reading { used, full_reset_at, reserved, fits_again: Admission::Now, ..*taken };
        }
    }

    fn into_readings(self) -> Readings {
        self.0.into_iter().collect::<Readings>().with_source(self.1)
    }
}

/// Returns whether a charge uses units. A peek and a refund use no units.
pub(super) fn is_charge(charge: &Charge<'_>) -> bool {
    charge.operation.as_charge().is_some_and(|(cost, _)| cost != Cost::PEEK)
}
