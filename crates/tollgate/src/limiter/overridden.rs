//! What overrides make of what the policy planned.

use std::sync::Arc;

use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Limit, LimitStatus, Store, Subject, Timestamp};

use super::Limiter;
use crate::overrides::{Override, Overrides, ResolvedOverride};
use crate::receipt::Receipt;

/// What overrides make of a plan.
pub(super) struct Overridden {
    pub(super) planned: OverriddenPlan,
    /// By which of them, in the plan's order.
    pub(super) by: Vec<Overrule>,
}

/// What is done in the place of a plan.
pub(super) enum OverriddenPlan {
    /// This is charged instead.
    PlannedCharge(Vec<PlannedCharge>),
    /// Nothing is charged: these are blocked, until their limits' statuses say.
    Blocked(Vec<PlannedCharge>, Vec<LimitStatus>),
}

/// An override that decided in the place of a limit.
#[derive(Clone, Debug)]
pub struct Overrule {
    /// The limit as the policy says it.
    pub limit: Arc<Limit>,
    /// What was said instead.
    pub said: Arc<Override>,
}

impl<S: Store> Limiter<S> {
    /// The overrides that are in force.
    #[must_use]
    pub const fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }

    /// The limit by which `subject` is counted at `now` where the policy says `limit`: that, or what
    /// an override puts in its place; `None` where nothing is counted.
    #[must_use]
    pub fn counted_by(
        &self,
        now: Timestamp,
        limit: &Arc<Limit>,
        subject: &Subject,
    ) -> Option<Arc<Limit>> {
        match self.overrides.resolve(limit, subject, &self.key, now) {
            Some((ResolvedOverride::Limit(limit), _)) => Some(limit),
            Some((ResolvedOverride::Unlimited, _)) => None,
            Some((ResolvedOverride::Blocked(_) | ResolvedOverride::Counted, _)) | None => {
                Some(Arc::clone(limit))
            }
        }
    }

    /// What is to be charged in the place of `planned`.
    pub(super) fn overridden(&self, now: Timestamp, planned: Vec<PlannedCharge>) -> Overridden {
        if self.overrides.is_empty() {
            return Overridden { planned: OverriddenPlan::PlannedCharge(planned), by: Vec::new() };
        }
        let (mut charged, mut blocked, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
        let mut by = Vec::new();
        for mut one in planned {
            let ruled = self.overrides.resolve(&one.limit, &one.subject, &self.key, now);
            let Some((ruled, said)) = ruled else {
                charged.push(one);
                continue;
            };
            by.push(Overrule { limit: Arc::clone(&one.limit), said });
            match ruled {
                ResolvedOverride::Unlimited => {}
                // It is among what is only counted.
                ResolvedOverride::Counted => charged.push(one),
                ResolvedOverride::Limit(limit) => {
                    one.limit = limit;
                    charged.push(one);
                }
                ResolvedOverride::Blocked(until) => {
                    statuses.push(blocked_until(until, &one));
                    blocked.push(one);
                }
            }
        }
        let planned = match blocked.is_empty() {
            true => OverriddenPlan::PlannedCharge(charged),
            false => OverriddenPlan::Blocked(blocked, statuses),
        };
        Overridden { planned, by }
    }

    /// The same receipt, by the limits that overrides put in the place of the policy's: a bucket
    /// that was made larger is not cut to the policy's by what comes back, and a settlement has the
    /// room that its subject has.
    pub(super) fn as_overridden(&self, now: Timestamp, receipt: Receipt) -> Receipt {
        receipt.by(|limit, subject| self.binding(now, limit, subject))
    }

    /// The limit by which `subject` is counted where the policy says `limit`.
    fn binding(&self, now: Timestamp, limit: &Arc<Limit>, subject: &Subject) -> Option<Arc<Limit>> {
        match self.overrides.resolve(limit, subject, &self.key, now)?.0 {
            ResolvedOverride::Limit(limit) => Some(limit),
            ResolvedOverride::Unlimited
            | ResolvedOverride::Blocked(_)
            | ResolvedOverride::Counted => None,
        }
    }
}

/// The status of who is blocked: all is used until then.
fn blocked_until(until: Timestamp, planned: &PlannedCharge) -> LimitStatus {
    LimitStatus {
        limit: Arc::clone(&planned.limit),
        cost: planned.cost,
        used: planned.limit.capacity(),
        reserved: 0,
        remaining: 0,
        resets_at: until,
        full_reset_at: until,
        admission: Admission::At(until),
    }
}
