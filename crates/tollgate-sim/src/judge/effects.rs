//! The effects that the second limit may have on a request: those of the policy, and those of
//! overrides.

use std::time::Duration;

use tokio::time::Instant;

use super::Judge;
use crate::node::Answer;
use crate::phase::Phase;
use crate::plan::{OverrideEffect, Plan};

impl Judge {
    /// Records that the faults begin now. The times of overrides are counted from now on.
    pub(crate) fn begin_faults(&self) {
        // The faults of a world begin once.
        let _ = self.faults_begun.set(Instant::now());
    }

    /// Returns whether the effect of the second limit on a request was the effect of the policy or
    /// of an override. Without faults, only one effect is right. With faults, nodes may receive an
    /// override and its removal late, so several effects are right. But no override applies before
    /// an operator has set it, after its end, or to another subject.
    pub(super) fn is_effect_right(&self, phase: Phase, subject: &str, answer: &Answer) -> bool {
        let (plan, effect) = (&self.plan, answer.effect);
        let (first, last) = plan.first_and_last_quota();
        match phase {
            Phase::Before => effect == OverrideEffect::Quota(first),
            Phase::After => {
                let of_override = last_override(plan, Phase::After.number_of(subject));
                effect == of_override.unwrap_or(OverrideEffect::Quota(last))
            }
            Phase::During | Phase::Recovering => {
                let number = Phase::During.number_of(subject);
                let answered = self.faults_begun.get().map_or(Duration::ZERO, Instant::elapsed);
                let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                let sent = millis(answered.saturating_sub(answer.waited));
                let mut granted = plan.overrides.iter();
                plan.accepted_quotas().any(|quota| effect == OverrideEffect::Quota(quota))
                    || granted.any(|one| {
                        let has_ended = one.until.is_some_and(|until| until < sent);
                        let is_set = one.from <= millis(answered) && !has_ended;
                        one.effect == effect && one.applies_to(number) && is_set
                    })
            }
        }
    }
}

/// Returns the effect of the override that applies to a subject at the end. `subject` is the number
/// of the subject. An override of the subject takes precedence over the override of all subjects.
pub(super) fn last_override(plan: &Plan, subject: Option<u64>) -> Option<OverrideEffect> {
    let find = |wanted: Option<u64>| {
        let mut last = plan.last_overrides.iter();
        last.find(|(of, _)| *of == wanted).map(|(_, effect)| *effect)
    };
    subject.and_then(|_| find(subject)).or_else(|| find(None))
}

/// Returns the quota of a subject of a phase without faults. Returns 0 if an override lifts the
/// limit or blocks the subject, because the limit then counts no admitted request as admitted by
/// it.
pub(super) fn exact_quota(plan: &Plan, phase: Phase, subject: &str) -> u64 {
    let (first, last) = plan.first_and_last_quota();
    if phase == Phase::Before {
        return first;
    }
    match last_override(plan, phase.number_of(subject)) {
        None => last,
        Some(OverrideEffect::Quota(quota)) => quota,
        Some(_) => 0,
    }
}
