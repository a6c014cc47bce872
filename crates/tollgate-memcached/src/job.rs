//! A job: one operation of a call, with the names of its items.

use tollgate_core::decide::{assess_operation, charge_admitted, charge_refused, refundable_until};
use tollgate_core::store::CellKey;
use tollgate_core::{
    Admission, Cell, Charge, ChargeId, Cost, Deduplication, Limit, Operation, Reading, Refusals,
    StoredState, Timestamp, decide,
};

use crate::key::Keys;
use crate::layout::{Layout, Names, View};

/// One operation of a call: a charge, a refund or another operation on one limit and subject. The
/// job owns its data, so the job can be completed even if its caller no longer waits.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) limit: Limit,
    pub(crate) names: Names,
    pub(crate) operation: Operation,
}

/// Whether the call that a job belongs to is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Every charge fits.
    Admitted,
    /// At least one charge does not fit.
    Refused,
}

/// The data by which a repeated refund is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) id: ChargeId,
    /// The time until which the refund is remembered.
    pub(crate) until: Timestamp,
}

impl Job {
    pub(crate) fn new(keys: &Keys, layout: Layout, charge: &Charge<'_>) -> Self {
        let name = keys.name(charge.limit, charge.subject);
        let names = Names::new(name, charge.limit, layout);
        Self { limit: charge.limit.clone(), names, operation: charge.operation }
    }

    /// Creates a job that only reads the state of the limit and subject in `cell_key`.
    pub(crate) fn at(keys: &Keys, layout: Layout, cell_key: &CellKey<'_>) -> Self {
        let CellKey { limit, subject } = *cell_key;
        Self::new(
            keys,
            layout,
            &Charge { limit, subject, operation: Operation::Peek { cost: Cost::PEEK } },
        )
    }

    /// Returns whether the job's charge fits in the state that was read. An operation that is not a
    /// charge always fits.
    pub(crate) fn fits(&self, view: &View, now: Timestamp) -> bool {
        self.operation.as_charge().is_none()
            || assess_operation(view.cell.as_ref(), &self.limit, self.operation, now).admission
                == Admission::Now
    }

    /// Evaluates the job on the state that was read. Returns the reading and the next state, which
    /// is `None` if nothing has to be stored.
    pub(crate) fn decide(
        &self,
        view: &View,
        decision: Decision,
        now: Timestamp,
    ) -> (Reading, Option<Cell>) {
        let cell = view.cell.clone();
        let (reading, next) = match (self.operation.as_charge(), decision) {
            (Some(_), Decision::Admitted) => {
                charge_admitted(cell, &self.limit, self.operation, now)
            }
            (Some(_), Decision::Refused) => charge_refused(cell, &self.limit, self.operation, now),
            _ => decide(cell, &self.limit, self.operation, now),
        };
        (mark_discarded(view, reading), next)
    }

    /// Returns the reading of the job on the state that was read, and does not change the state.
    pub(crate) fn peek(&self, view: &View, now: Timestamp) -> Reading {
        mark_discarded(view, assess_operation(view.cell.as_ref(), &self.limit, self.operation, now))
    }

    /// Returns a job that refunds this job's charge in the window or block of `reading`. Returns
    /// `None` if this job charged nothing.
    pub(crate) fn undone(&self, reading: &Reading) -> Option<Self> {
        let operation = self.operation.inverse(reading.position)?;
        Some(Self { operation, ..self.clone() })
    }

    pub(crate) fn counts_refusals(&self) -> bool {
        self.limit.refusals() == Refusals::Counted
    }

    /// Returns the data for recognizing a repetition of this refund. Returns `None` if this job is
    /// not a refund, if the same refund cannot arrive again, or if the refund can no longer return
    /// units.
    pub(crate) fn guard(&self, now: Timestamp) -> Option<Guard> {
        let Operation::Refund { position, id, deduplication: Deduplication::ById, .. } =
            self.operation
        else {
            return None;
        };
        // The refund is remembered for at most two windows and the skew, whatever the receipt
        // claims.
        let window = self.limit.window();
        let longest = now.after(window).after(window).after(self.limit.skew_max());
        let until = refundable_until(&self.limit, position).min(longest);
        (until > now).then_some(Guard { id, until })
    }
}

fn mark_discarded(view: &View, reading: Reading) -> Reading {
    if view.is_invalid { Reading { found: StoredState::Discarded, ..reading } } else { reading }
}
