//! Candidates that are charged beside their limits.

use std::sync::Arc;

use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Evaluation, LimitStatus};

/// A charge on a candidate, and how the limit stands beside which it is tried.
pub(super) struct Beside {
    pub(super) live: LimitStatus,
    pub(super) candidate: PlannedCharge,
}

impl Beside {
    /// What is tried beside `planned`, which stand as `evaluation` says, one after the other.
    pub(super) fn of(planned: &[PlannedCharge], evaluation: &Evaluation) -> Vec<Self> {
        let both = planned.iter().zip(&evaluation.statuses);
        let beside = both.filter_map(|(planned, live)| {
            let candidate = Arc::clone(planned.limit.candidate()?);
            let candidate = PlannedCharge { limit: candidate, ..planned.clone() };
            Some(Self { live: live.clone(), candidate })
        });
        beside.collect()
    }
}
