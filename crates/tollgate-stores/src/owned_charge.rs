//! Copies of charges that own their data, for tasks that outlive the caller.

use tollgate_core::{Charge, Limit, Operation, Subject};

/// A charge that owns its data, so the charge can outlive its caller.
#[derive(Debug)]
pub(super) struct OwnedCharge {
    pub(super) limit: Limit,
    pub(super) subject: Subject,
    pub(super) operation: Operation,
}

impl OwnedCharge {
    pub(super) fn new(charge: &Charge<'_>) -> Self {
        Self {
            limit: charge.limit.clone(),
            subject: charge.subject.clone(),
            operation: charge.operation,
        }
    }

    pub(super) const fn as_charge(&self) -> Charge<'_> {
        Charge { limit: &self.limit, subject: &self.subject, operation: self.operation }
    }
}
