//! The results for the requests to which one limit applied.

use std::sync::Arc;

use tollgate::model::{Algorithm, Limit, LimitStatus, Subject};
use tollgate::observe::CandidateCounts;

use super::subjects::Subjects;
use super::{Counts, RequestOutcome};

/// The results for the requests to which one limit applied.
///
/// `refused` counts requests that this limit refused. Requests that another limit refused are only
/// in `requests`.
#[derive(Debug)]
pub(crate) struct LimitTally {
    pub(crate) limit: Arc<Limit>,
    pub(crate) counts: Counts,
    /// Requests that this limit would have refused if it were not in shadow mode.
    pub(crate) shadow_refused: u64,
    /// The results of the limit's candidate, for the requests that both the limit and the candidate
    /// evaluated.
    pub(crate) trials: CandidateCounts,
    /// The most units that any subject had used at any point in time.
    pub(crate) peak: u64,
    pub(crate) subjects: Subjects,
}

impl LimitTally {
    /// Creates a tally without counts.
    pub(super) fn new(limit: &Arc<Limit>) -> Self {
        Self {
            limit: Arc::clone(limit),
            counts: Counts::default(),
            shadow_refused: 0,
            trials: CandidateCounts::default(),
            peak: 0,
            subjects: Subjects::default(),
        }
    }

    /// Counts a request of `subject`, which the log names as `client`.
    pub(super) fn record(
        &mut self,
        subject: &Subject,
        status: &LimitStatus,
        client: &[u8],
        now: u64,
        outcome: RequestOutcome,
    ) {
        let outcome = match outcome {
            RequestOutcome::Refused if status.is_refusal() => Some(RequestOutcome::Refused),
            RequestOutcome::Refused => None,
            // A permit ends with its request and is not refunded.
            RequestOutcome::Refunded if self.is_concurrency() => Some(RequestOutcome::Admitted),
            passed => Some(passed),
        };
        self.peak = self.peak.max(status.used);
        let tally = self.subjects.entry(subject.clone(), client);
        tally.peak = tally.peak.max(status.used);
        match outcome {
            Some(outcome) => {
                self.counts.add(outcome);
                tally.counts.add(outcome);
            }
            None => {
                self.counts.requests += 1;
                tally.counts.requests += 1;
            }
        }
        if outcome == Some(RequestOutcome::Refused) {
            tally.refusals.add(now);
        }
    }

    /// Returns whether the limit counts requests in flight and has evaluated at least one request.
    pub(crate) fn is_of_leases(&self) -> bool {
        self.counts.requests > 0 && self.is_concurrency()
    }

    fn is_concurrency(&self) -> bool {
        matches!(self.limit.algorithm(), Algorithm::Concurrency(_))
    }
}
