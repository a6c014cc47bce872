//! Decisions, peeks and refunds as JSON documents.

use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::limiter::{Redeemed, Refunded};
use tollgate::model::{Evaluation, Store, StoreError};
use tollgate::{Revision, headers, limiter};

use super::app::App;
use super::prefer::Detail;
use super::wire::{
    DecisionResponse, FailureCause, HeaderFields, LimitStatusBody, OverriddenLimit, RefundOutcome,
    RefundResponse, RefundedLimitStatus, ShadowDecision, Source,
};

impl<S: Store> App<S> {
    /// Returns the JSON document for `decision`. Moves the receipt of `decision` into the document,
    /// unless `detail` selects a minimal document.
    pub(super) fn decision_answer<'d>(
        &self,
        decision: &'d mut Decision,
        detail: Detail,
    ) -> DecisionResponse<'d> {
        let receipt = decision.receipt.take().filter(|_| detail == Detail::Full);
        let receipt = receipt.map(|receipt| self.limiter.seal(receipt, decision.evaluation.now));
        let Decision { policy, rules, evaluation, shadow, source, .. } = &*decision;
        let shadow = shadow.as_ref().map(|shadow| ShadowDecision {
            admitted: shadow.is_admitted(),
            statuses: &shadow.statuses,
        });
        let admitted = decision.is_admitted();
        let overrides = decision.overrides.iter();
        let overrides = overrides.map(|applied| OverriddenLimit::of(applied, |_| None)).collect();
        DecisionResponse {
            admitted,
            shadow,
            receipt,
            overrides,
            ..peek_answer(policy, rules, evaluation, *source, detail)
        }
    }
}

/// Returns the JSON document for a peek, which charges nothing. A document for a decision is made
/// from this document.
pub(super) fn peek_answer<'v>(
    policy: &'v Revision,
    rules: &'v [Arc<str>],
    evaluation: &'v Evaluation,
    source: limiter::DecisionSource,
    detail: Detail,
) -> DecisionResponse<'v> {
    let (source, failure) = source_of(source);
    let headers = (detail == Detail::Full).then(|| {
        let mut fields = HeaderFields::default();
        headers::write(&policy.answers().headers, evaluation, &mut fields);
        fields
    });
    DecisionResponse {
        admitted: evaluation.is_admitted(),
        source,
        failure,
        policy: policy.version(),
        rules,
        statuses: &evaluation.statuses,
        refused_by: &evaluation.statuses,
        retry_after_ms: evaluation.retry_after().map(|wait| wait.get().max(1)),
        shadow: None,
        receipt: None,
        overrides: Vec::new(),
        headers,
    }
}

/// Returns the JSON document for the refund or the release of a receipt.
pub(super) fn refund_answer<'r>(redeemed: &'r Redeemed) -> RefundResponse<'r> {
    let limit = |Refunded { units, status: limit_status }: &'r Refunded| RefundedLimitStatus {
        refunded: *units,
        limit_status: LimitStatusBody::of(limit_status),
    };
    RefundResponse {
        outcome: match redeemed.outcome {
            limiter::Outcome::Refunded => RefundOutcome::Refunded,
            limiter::Outcome::Unchanged => RefundOutcome::Unchanged,
            limiter::Outcome::Expired => RefundOutcome::Expired,
        },
        policy: redeemed.policy.version(),
        limits: redeemed.limits.iter().map(limit).collect(),
    }
}

/// Returns the source of a decision as the JSON documents name it. If the store did not decide,
/// also returns the reason.
pub(super) const fn source_of(source: limiter::DecisionSource) -> (Source, Option<FailureCause>) {
    match source {
        limiter::DecisionSource::Store => (Source::Store, None),
        limiter::DecisionSource::DenyCache => (Source::DenyCache, None),
        limiter::DecisionSource::Overflow => (Source::Overflow, None),
        limiter::DecisionSource::Fallback(error) => (Source::Fallback, Some(cause_of(error))),
        limiter::DecisionSource::Failure(error) => (Source::Failure, Some(cause_of(error))),
    }
}

const fn cause_of(error: StoreError) -> FailureCause {
    match error {
        StoreError::Full => FailureCause::Full,
        StoreError::TimedOut => FailureCause::TimedOut,
        StoreError::Corrupt => FailureCause::Corrupt,
        // This arm also covers variants that a later version adds. For all of them, the store did
        // not answer.
        _ => FailureCause::Unavailable,
    }
}
