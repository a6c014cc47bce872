//! A verdict as a document.

use std::sync::Arc;

use tollgate::core::{Store, StoreError, Verdict};
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
    pub(super) fn decided<'d>(
        &self,
        decision: &'d mut Decision,
        detail: Detail,
    ) -> VerdictAnswer<'d> {
        let receipt = decision.receipt.take().filter(|_| detail == Detail::Whole);
        let receipt = receipt.map(|receipt| self.limiter.seal(receipt, decision.verdict.now));
        let Decision { policy, rules, verdict, shadow, source, .. } = &*decision;
        let shadow = shadow.as_ref().map(|shadow| ShadowVerdict {
            admitted: shadow.is_admitted(),
            standings: &shadow.standings,
        });
        let admitted = decision.is_admitted();
        let overrides = decision.overrides.iter().map(OverruledLimit::of).collect();
        VerdictAnswer {
            admitted,
            shadow,
            receipt,
            overrides,
            ..looked(policy, rules, verdict, *source, detail)
        }
    }
}

/// The document of a look: nothing was charged.
pub(super) fn looked<'v>(
    policy: &'v Revision,
    rules: &'v [Arc<str>],
    verdict: &'v Verdict,
    source: limiter::Source,
    detail: Detail,
) -> VerdictAnswer<'v> {
    let (source, failure) = source_of(source);
    let headers = (detail == Detail::Whole).then(|| {
        let mut fields = HeaderFields::default();
        headers::write(&policy.answers().headers, verdict, &mut fields);
        fields
    });
    VerdictAnswer {
        admitted: verdict.is_admitted(),
        source,
        failure,
        policy: policy.version(),
        rules,
        standings: &verdict.standings,
        refused_by: &verdict.standings,
        retry_after_ms: verdict.retry_after().map(|wait| wait.get().max(1)),
        shadow: None,
        receipt: None,
        overrides: Vec::new(),
        headers,
    }
}

/// The document of what a receipt did.
pub(super) fn given_back<'r>(redeemed: &'r Redeemed) -> RefundAnswer<'r> {
    let limit = |GivenBack { units, standing }: &'r GivenBack| RefundedLimit {
        given_back: *units,
        standing: LimitStanding::of(standing),
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
pub(super) const fn source_of(source: limiter::Source) -> (Source, Option<FailureCause>) {
    match source {
        limiter::Source::Store => (Source::Store, None),
        limiter::Source::Remembered => (Source::Remembered, None),
        limiter::Source::Fallback(error) => (Source::Fallback, Some(cause_of(error))),
        limiter::Source::Failure(error) => (Source::Failure, Some(cause_of(error))),
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
