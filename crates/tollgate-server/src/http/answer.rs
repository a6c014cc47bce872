//! A verdict as a document.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use tollgate::core::{Fit, Standing, Store, StoreError, Verdict};
use tollgate::limiter::{GivenBack, Redeemed};
use tollgate::{Decision, Revision, headers, limiter};

use super::app::App;
use super::wire::{
    FailureCause, LimitStanding, Outcome, RefundAnswer, RefundedLimit, ShadowVerdict, Source,
    VerdictAnswer,
};

impl<S: Store> App<S> {
    /// The document of a decision; its receipt goes out with it.
    pub(super) fn decided(&self, decision: Decision) -> VerdictAnswer {
        let admitted = decision.is_admitted();
        let Decision { policy, rules, verdict, shadow, source, receipt, .. } = decision;
        let receipt = receipt.map(|receipt| self.limiter.seal(receipt, verdict.now));
        let shadow = shadow.map(|shadow| ShadowVerdict {
            admitted: shadow.is_admitted(),
            standings: standings(&shadow),
        });
        VerdictAnswer { rules, shadow, receipt, ..answer(&policy, &verdict, source, admitted) }
    }

    pub(super) fn redeemed(&self, redeemed: &Redeemed) -> RefundAnswer {
        let limit = |GivenBack { units, standing }: &GivenBack| RefundedLimit {
            given_back: *units,
            standing: standing_of(standing),
        };
        RefundAnswer {
            outcome: match redeemed.outcome {
                limiter::Outcome::GivenBack => Outcome::GivenBack,
                limiter::Outcome::Unchanged => Outcome::Unchanged,
                limiter::Outcome::Expired => Outcome::Expired,
            },
            policy: Arc::clone(redeemed.policy.version()),
            limits: redeemed.limits.iter().map(limit).collect(),
        }
    }
}

/// The document of a look: nothing was charged.
pub(super) fn looked(
    policy: &Revision,
    verdict: &Verdict,
    source: limiter::Source,
) -> VerdictAnswer {
    answer(policy, verdict, source, verdict.is_admitted())
}

#[allow(clippy::fn_params_excessive_bools, reason = "it is what the document says")]
fn answer(
    policy: &Revision,
    verdict: &Verdict,
    source: limiter::Source,
    admitted: bool,
) -> VerdictAnswer {
    let (source, failure) = source_of(source);
    let refused_by = verdict.refusals().map(|standing| standing.limit.name().to_owned());
    let mut fields = HeaderMap::new();
    headers::write(&policy.answers().headers, verdict, &mut fields);
    VerdictAnswer {
        admitted,
        source,
        failure,
        policy: Arc::clone(policy.version()),
        rules: Vec::new(),
        standings: standings(verdict),
        refused_by: refused_by.collect(),
        retry_after_ms: verdict.retry_after().map(|wait| wait.get().max(1)),
        shadow: None,
        receipt: None,
        headers: as_text(&fields),
    }
}

/// How the limits of `verdict` stand.
pub(super) fn standings(verdict: &Verdict) -> Vec<LimitStanding> {
    verdict.standings.iter().map(standing_of).collect()
}

fn standing_of(standing: &Standing) -> LimitStanding {
    let limit = &standing.limit;
    LimitStanding {
        name: limit.name().to_owned(),
        resource: limit.resource().to_owned(),
        visible: standing.is_visible(),
        admits: standing.fit == Fit::Now,
        limit: limit.capacity(),
        used: standing.used,
        remaining: standing.remaining,
        reset: standing.resets_at.as_secs_ceil(),
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

/// The same fields as text; lines of one name become one list.
fn as_text(fields: &HeaderMap) -> BTreeMap<String, String> {
    let mut text: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in fields {
        // The profiles write names of limits and numbers.
        let Ok(value) = value.to_str() else { continue };
        text.entry(name.as_str().to_owned())
            .and_modify(|line| *line = format!("{line}, {value}"))
            .or_insert_with(|| value.to_owned());
    }
    text
}
