//! A job: one charge of a call, on items that have names.

use tollgate_core::decide::{assess_operation, charge_admitted, charge_refused, refundable_until};
use tollgate_core::store::CellKey;
use tollgate_core::{
    Admission, Cell, Charge, ChargeId, Cost, Deduplication, Limit, Operation, Reading, Refusals,
    StoredState, Timestamp, decide,
};

use crate::key::Keys;
use crate::layout::{Layout, Names, View};

/// One charge, kept until it is done whether or not anyone waits for it.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) limit: Limit,
    pub(crate) names: Names,
    pub(crate) operation: Operation,
}

/// What was decided of the call as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Every take fits.
    Admitted,
    /// One does not.
    Refused,
}

/// A refund that must not be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) id: ChargeId,
    /// Until when it is remembered.
    pub(crate) until: Timestamp,
}

impl Job {
    pub(crate) fn new(keys: &Keys, layout: Layout, charge: &Charge<'_>) -> Self {
        let name = keys.name(charge.limit, charge.subject);
        let names = Names::new(name, charge.limit, layout);
        Self { limit: charge.limit.clone(), names, operation: charge.operation }
    }

    /// A look at what is kept at `place`.
    pub(crate) fn at(keys: &Keys, layout: Layout, place: &CellKey<'_>) -> Self {
        let CellKey { limit, subject } = *place;
        Self::new(
            keys,
            layout,
            &Charge { limit, subject, operation: Operation::Peek { cost: Cost::PEEK } },
        )
    }

    /// Whether the take, if it is one, fits in what was read.
    pub(crate) fn fits(&self, view: &View, now: Timestamp) -> bool {
        self.operation.as_charge().is_none()
            || assess_operation(view.cell.as_ref(), &self.limit, self.operation, now).admission
                == Admission::Now
    }

    /// The reading after the job was done on what was read, and the next cell.
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
        (told(view, reading), next)
    }

    /// How it stands, with nothing done.
    pub(crate) fn look(&self, view: &View, now: Timestamp) -> Reading {
        told(view, assess_operation(view.cell.as_ref(), &self.limit, self.operation, now))
    }

    /// The job that gives back what this one took where `position` of `reading` says; `None` if it took
    /// nothing.
    pub(crate) fn undone(&self, reading: &Reading) -> Option<Self> {
        let operation = self.operation.inverse(reading.position)?;
        Some(Self { operation, ..self.clone() })
    }

    pub(crate) fn counts_refusals(&self) -> bool {
        self.limit.refusals() == Refusals::Counted
    }

    /// What has to be remembered of it, if it is a refund that must not be repeated and that may
    /// still give something back.
    pub(crate) fn guard(&self, now: Timestamp) -> Option<Guard> {
        let Operation::Refund { position, id, deduplication: Deduplication::ById, .. } =
            self.operation
        else {
            return None;
        };
        // Never longer than two windows, whatever a mark claims.
        let window = self.limit.window();
        let longest = now.after(window).after(window).after(self.limit.skew_max());
        let until = refundable_until(&self.limit, position).min(longest);
        (until > now).then_some(Guard { id, until })
    }
}

fn told(view: &View, reading: Reading) -> Reading {
    if view.is_junk { Reading { found: StoredState::Discarded, ..reading } } else { reading }
}
