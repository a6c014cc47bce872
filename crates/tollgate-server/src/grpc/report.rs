//! The report of a request whose parts were decided separately. The observer receives one decision
//! on the whole request.

use std::sync::Arc;

use tollgate::decision::{CandidateOutcome, ChargePositions, Decision};
use tollgate::model::policy::{ChargeOn, OnFailure};
use tollgate::model::{Evaluation, LimitStatus, Store, Timestamp};
use tollgate::{DecisionSource, Limiter, Revision};

use super::charge::{Mode, PartOutcome, PartResult, Unreported};

/// The content of the decision on a request, from the decisions on its parts.
pub(super) struct Report {
    source: DecisionSource,
    /// The statuses of charges that could not refuse the request.
    shadow: Option<Evaluation>,
    candidates: Vec<CandidateOutcome>,
}

impl Report {
    /// Takes the decisions on the parts `results` of a request with the outcome `outcome`. Returns
    /// `None` if the limiter made no decision, or has already reported the only decision.
    pub(super) fn of(
        now: Timestamp,
        results: &mut [PartResult],
        outcome: PartOutcome,
    ) -> Option<Self> {
        let (mut sources, mut statuses, mut candidates) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_reported = true;
        for one in results {
            let Some(unreported) = one.unreported.take() else { continue };
            is_reported = false;
            let Unreported { source, counted, candidates: more } = unreported;
            if one.mode == Mode::Shadow {
                statuses.append(&mut one.evaluation.statuses);
            } else if one.outcome == outcome {
                sources.push(source);
            }
            statuses.extend(counted.into_iter().flat_map(|counted| counted.statuses));
            candidates.extend(more);
        }
        let source = sources.into_iter().max_by_key(|source| inexactness(*source));
        let with = |statuses: Vec<LimitStatus>| Evaluation { now, statuses };
        let shadow = (!statuses.is_empty()).then(|| with(statuses));
        (!is_reported).then(|| Self { source: source.unwrap_or_default(), shadow, candidates })
    }

    /// Reports the decision to the observer of `limiter`. `evaluation` has the statuses of the
    /// limits that decided, and is returned.
    pub(super) fn send<S: Store>(
        self,
        limiter: &Limiter<S>,
        policy: &Arc<Revision>,
        outcome: PartOutcome,
        evaluation: Evaluation,
        on_failure: OnFailure,
    ) -> Evaluation {
        let Self { source, shadow, candidates } = self;
        let decision = Decision {
            policy: Arc::clone(policy),
            rules: Vec::new(),
            is_blocked: outcome == PartOutcome::Refused && evaluation.is_admitted(),
            evaluation,
            shadow,
            candidates,
            overrides: Vec::new(),
            source,
            on_failure,
            charge: ChargeOn::Arrival,
            receipt: None,
            reserved: None,
            pending: None,
            positions: ChargePositions::default(),
            conditional: Vec::new(),
        };
        limiter.report(&decision);
        decision.evaluation
    }
}

/// Returns the rank of `source` among the sources of the parts of a request. The source of the
/// request is the source with the highest rank, so a part that the store did not decide is visible.
fn inexactness(source: DecisionSource) -> u8 {
    match source {
        DecisionSource::DenyCache => 0,
        DecisionSource::Store => 1,
        DecisionSource::Overflow => 2,
        DecisionSource::Fallback(_) => 3,
        DecisionSource::Failure(_) => 4,
    }
}
