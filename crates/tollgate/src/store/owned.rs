//! Charges for tasks of their own.

use tollgate_core::{Ask, Charge, Limit, Subject};

/// A charge that outlives its caller.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) limit: Limit,
    pub(super) subject: Subject,
    pub(super) ask: Ask,
}

impl Owned {
    pub(super) fn new(charge: &Charge<'_>) -> Self {
        Self { limit: charge.limit.clone(), subject: charge.subject.clone(), ask: charge.ask }
    }

    pub(super) const fn as_charge(&self) -> Charge<'_> {
        Charge { limit: &self.limit, subject: &self.subject, ask: self.ask }
    }
}
