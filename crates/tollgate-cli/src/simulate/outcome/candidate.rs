//! The results of a limit's candidate on the requests of a log.

use serde::Serialize;
use tollgate::observe::CandidateCounts;

use super::super::limit_text;
use super::super::tally::LimitTally;

/// The results of a limit's candidate, for the requests that both the limit and the candidate
/// evaluated.
#[derive(Debug, Serialize)]
pub(crate) struct CandidateOutcome {
    /// The candidate in words.
    pub(crate) rule: String,
    pub(crate) both_admit: u64,
    pub(crate) both_refuse: u64,
    /// Requests that the limit refused and the candidate would have admitted.
    pub(crate) only_live_refuses: u64,
    /// Requests that the limit admitted and the candidate would have refused.
    pub(crate) only_candidate_refuses: u64,
}

impl CandidateOutcome {
    /// Returns the results, or `None` if the limit has no candidate.
    pub(super) fn of(tally: &LimitTally) -> Option<Self> {
        let CandidateCounts { both_admit, both_refuse, only_live_refuses, only_candidate_refuses } =
            tally.trials;
        let rule = limit_text::describe(tally.limit.candidate()?);
        Some(Self { rule, both_admit, both_refuse, only_live_refuses, only_candidate_refuses })
    }

    /// Returns the number of requests that the candidate would have refused.
    pub(crate) const fn refused(&self) -> u64 {
        self.both_refuse + self.only_candidate_refuses
    }
}
