//! Counts of requests, by the decisions of a limit and of its candidate.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::decision::CandidateOutcome;

/// The numbers of requests that a limit and its candidate both evaluated, by the decisions of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CandidateCounts {
    /// Requests that the limit admitted and that the candidate would have admitted.
    pub both_admit: u64,
    /// Requests that the limit refused and that the candidate would have refused.
    pub both_refuse: u64,
    /// Requests that the limit refused and that the candidate would have admitted.
    pub only_live_refuses: u64,
    /// Requests that the limit admitted and that the candidate would have refused.
    pub only_candidate_refuses: u64,
}

impl CandidateCounts {
    /// Counts one request by whether the limit and the candidate admitted it.
    pub fn add(&mut self, outcome: &CandidateOutcome) {
        *match (outcome.live.is_refusal(), outcome.candidate.is_refusal()) {
            (false, false) => &mut self.both_admit,
            (true, true) => &mut self.both_refuse,
            (true, false) => &mut self.only_live_refuses,
            (false, true) => &mut self.only_candidate_refuses,
        } += 1;
    }

    /// Returns the number of requests that the limit and its candidate both evaluated.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.both_admit + self.both_refuse + self.only_live_refuses + self.only_candidate_refuses
    }
}

/// The counts of [`CandidateCounts`], updated by many threads.
#[derive(Debug, Default)]
pub(super) struct CandidateCounters([AtomicU64; 4]);

impl CandidateCounters {
    pub(super) fn add(&self, CandidateOutcome { live, candidate, .. }: &CandidateOutcome) {
        let index = usize::from(live.is_refusal()) * 2 + usize::from(candidate.is_refusal());
        self.0[index].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> CandidateCounts {
        let [both_admit, only_candidate_refuses, only_live_refuses, both_refuse] =
            self.0.each_ref().map(|counter| counter.load(Ordering::Relaxed));
        CandidateCounts { both_admit, both_refuse, only_live_refuses, only_candidate_refuses }
    }
}
