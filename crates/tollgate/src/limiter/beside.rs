//! Candidates that are charged beside their limits.

use std::sync::Arc;

use tollgate_core::policy::Planned;
use tollgate_core::{Standing, Verdict};

/// A charge on a candidate, and how the limit stands beside which it is tried.
pub(super) struct Beside {
    pub(super) live: Standing,
    pub(super) candidate: Planned,
}

impl Beside {
    /// What is tried beside `planned`, which stand as `verdict` says, one after the other.
    pub(super) fn of(planned: &[Planned], verdict: &Verdict) -> Vec<Self> {
        let both = planned.iter().zip(&verdict.standings);
        let beside = both.filter_map(|(planned, live)| {
            let candidate = Arc::clone(planned.limit.candidate()?);
            let candidate = Planned { limit: candidate, ..planned.clone() };
            Some(Self { live: live.clone(), candidate })
        });
        beside.collect()
    }
}
