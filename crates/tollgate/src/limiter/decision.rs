//! What became of one request.

use std::sync::Arc;

use tollgate_core::policy::{ChargeOn, OnFailure};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, LimitStatus, Timestamp};

use super::completion::Pending;
use super::overridden::Overrule;
use super::taking::is_looked_at;
use super::trial::Trial;
use crate::receipt::Receipt;
use crate::revision::Revision;

/// What became of one request.
#[derive(Debug)]
pub struct Decision {
    /// The policy that it was made by, from the plan to the receipt; whoever tells of it does so by
    /// the same one.
    pub policy: Arc<Revision>,
    /// The names of the rules that matched, in the policy's order.
    pub rules: Vec<Arc<str>>,
    /// How the limits stand that decided. Without statuses if nothing had an answer.
    pub evaluation: Evaluation,
    /// What the rules in shadow mode would have said, and the limits that are not enforced for
    /// these subjects.
    pub shadow: Option<Evaluation>,
    /// What candidates would have said, each beside its limit; of a request that another limit
    /// refused nothing.
    pub trials: Vec<Trial>,
    /// Overrides that decided in the place of limits, unless nothing had an answer.
    pub overrides: Vec<Overrule>,
    /// Who decided.
    pub source: DecisionSource,
    /// What its rules do while the store has no answer.
    pub on_failure: OnFailure,
    /// When its rules charge.
    pub charge: ChargeOn,
    /// What was charged, if anything was.
    pub receipt: Option<Receipt>,
    /// What was reserved until the answer tells its cost, if anything was: only where the caller
    /// [said that it sees the answer](super::Limiter::check_metered_at), and settles it.
    pub reserved: Option<Receipt>,
    /// What is charged once the answer is known, if anything is: hand it to
    /// [`Limiter::complete`](super::Limiter::complete) unless the answer is free.
    pub pending: Option<Pending>,
}

/// What a request's answer makes of its charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It costs what its limits say.
    Charged,
    /// It costs nothing.
    Free,
}

impl Decision {
    /// Whether the request may pass.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        match self.source {
            DecisionSource::Store | DecisionSource::DenyCache | DecisionSource::Fallback(_) => {
                self.evaluation.is_admitted()
            }
            DecisionSource::Failure(_) => self.on_failure != OnFailure::Deny,
        }
    }

    /// Turns the evaluation of an admitted request into what its client is told with the answer, which
    /// is known at `now`.
    ///
    /// It is told from the decision's own reading: what was charged and turned out free is added,
    /// what was looked at and is charged now is taken off. No second question, and nothing below 0.
    pub fn settle(&mut self, settlement: Settlement, now: Timestamp) {
        let charge = self.charge;
        let settled = |status: LimitStatus| match (is_looked_at(charge, &status.limit), settlement)
        {
            (false, Settlement::Free) => status.refunded(),
            (true, Settlement::Charged) => status.charged(now),
            (false, Settlement::Charged) | (true, Settlement::Free) => status,
        };
        let statuses = std::mem::take(&mut self.evaluation.statuses);
        self.evaluation.statuses = statuses.into_iter().map(settled).collect();
    }
}
