//! A evaluation as a document.

use std::sync::Arc;

use tollgate::core::{Evaluation, Store, StoreError};
use tollgate::limiter::{GivenBack, Redeemed};
use tollgate::{Decision, Revision, headers, limiter};

use super::app::App;
use super::prefer::Detail;
use super::wire::{
    FailureCause, HeaderFields, LimitStanding, Outcome, OverruledLimit, RefundAnswer,
    RefundedLimit, ShadowVerdict, Source, VerdictAnswer,
};

impl<S: Store> App<S> {
    /// The document of a decision; its receipt goes out with it.
    pub(super) fn decision_answer<'d>(
        &self,
        decision: &'d mut Decision,
        detail: Detail,
    ) -> VerdictAnswer<'d> {
        let receipt = decision.receipt.take().filter(|_| detail == Detail::Full);
        let receipt = receipt.map(|receipt| self.limiter.seal(receipt, decision.evaluation.now));
        let Decision { policy, rules, evaluation, shadow, source, .. } = &*decision;
        let shadow = shadow.as_ref().map(|shadow| ShadowVerdict {
            admitted: shadow.is_admitted(),
            standings: &shadow.statuses,
        });
        let admitted = decision.is_admitted();
        let overrides = decision.overrides.iter().map(OverruledLimit::of).collect();
        VerdictAnswer {
            admitted,
            shadow,
            receipt,
            overrides,
            ..peek_answer(policy, rules, evaluation, *source, detail)
        }
    }
}

/// The document of a look: nothing was charged.
pub(super) fn peek_answer<'v>(
    policy: &'v Revision,
    rules: &'v [Arc<str>],
    evaluation: &'v Evaluation,
    source: limiter::DecisionSource,
    detail: Detail,
) -> VerdictAnswer<'v> {
    let (source, failure) = source_of(source);
    let headers = (detail == Detail::Full).then(|| {
        let mut fields = HeaderFields::default();
        headers::write(&policy.answers().headers, evaluation, &mut fields);
        fields
    });
    VerdictAnswer {
        admitted: evaluation.is_admitted(),
        source,
        failure,
        policy: policy.version(),
        rules,
        standings: &evaluation.statuses,
        refused_by: &evaluation.statuses,
        retry_after_ms: evaluation.retry_after().map(|wait| wait.get().max(1)),
        shadow: None,
        receipt: None,
        overrides: Vec::new(),
        headers,
    }
}

/// The document of what a receipt did.
pub(super) fn refund_answer<'r>(redeemed: &'r Redeemed) -> RefundAnswer<'r> {
    let limit = |GivenBack { units, status: limit_status }: &'r GivenBack| RefundedLimit {
        given_back: *units,
        limit_status: LimitStanding::of(limit_status),
    };
    RefundAnswer {
        outcome: match redeemed.outcome {
            limiter::Outcome::GivenBack => Outcome::GivenBack,
            limiter::Outcome::Unchanged => Outcome::Unchanged,
            limiter::Outcome::Expired => Outcome::Expired,
        },
        policy: redeemed.policy.version(),
        limits: redeemed.limits.iter().map(limit).collect(),
    }
}

/// Who decided, and why the store did not.
pub(super) const fn source_of(source: limiter::DecisionSource) -> (Source, Option<FailureCause>) {
    match source {
        limiter::DecisionSource::Store => (Source::Store, None),
        limiter::DecisionSource::DenyCache => (Source::Remembered, None),
        limiter::DecisionSource::Fallback(error) => (Source::Fallback, Some(cause_of(error))),
        limiter::DecisionSource::Failure(error) => (Source::Failure, Some(cause_of(error))),
    }
}

const fn cause_of(error: StoreError) -> FailureCause {
    match error {
        StoreError::Full => FailureCause::Full,
        StoreError::TimedOut => FailureCause::TimedOut,
        StoreError::Corrupt => FailureCause::Corrupt,
        // And what a later version may add: there was no answer.
        _ => FailureCause::Unavailable,
    }
}
