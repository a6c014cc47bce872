//! Candidates of limits. A candidate is charged for the same requests as its limit.

use std::sync::Arc;

use tollgate_core::policy::{PlannedCharge, RuleMode};
use tollgate_core::{Evaluation, LimitStatus};

use crate::decision::Evaluated;

/// A candidate of a limit, and the status of this limit for one request.
pub(super) struct Candidate {
    /// The position, in the decision, of the status of the limit to which the candidate belongs.
    pub(super) evaluated: Evaluated,
    /// The status of the limit to which the candidate belongs. This limit is in force, and the
    /// candidate is not.
    pub(super) live: LimitStatus,
    /// The charge of the candidate.
    pub(super) planned: PlannedCharge,
}

impl Candidate {
    /// Returns the candidates of the limits of `planned`. `evaluation` contains the statuses of
    /// these limits, and `mode` states whether these limits were enforced.
    pub(super) fn of(
        mode: RuleMode,
        planned: &[PlannedCharge],
        evaluation: &Evaluation,
    ) -> Vec<Self> {
        let both = planned.iter().zip(&evaluation.statuses).enumerate();
        let candidates = both.filter_map(|(index, (planned, live))| {
            let candidate = Arc::clone(planned.limit.candidate()?);
            let planned = PlannedCharge { limit: candidate, ..planned.clone() };
            let evaluated = match mode {
                RuleMode::Enforce => Evaluated::Enforced(index),
                RuleMode::Shadow => Evaluated::Counted(index),
            };
            Some(Self { evaluated, live: live.clone(), planned })
        });
        candidates.collect()
    }
}
