//! Applies overrides to the charges of a plan.

use std::sync::Arc;

use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Limit, LimitStatus, Store, Subject, Timestamp};

use super::Limiter;
use crate::decision::{AppliedOverride, ChargePositions, Evaluated};
use crate::overrides::{MAX_OVERRIDE_DURATION, NEVER, Overrides, ResolvedOverride};
use crate::receipt::Receipt;

/// Charges after the overrides in force were applied to them.
pub(super) enum Resolved {
    /// The charges that the store evaluates.
    Charges(Vec<PlannedCharge>),
    /// The statuses of subjects that overrides block. Nothing is charged for them.
    Blocked(Vec<PlannedCharge>, Vec<LimitStatus>),
}

impl<S> Limiter<S> {
    /// The overrides in force.
    #[must_use]
    pub const fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }
}

impl<S: Store> Limiter<S> {
    /// Returns the limit that replaces the policy's `limit` for `subject` at `now`: the limit of an
    /// override, or `limit` itself; `None` if an override lifts it.
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

    /// Applies the overrides in force at `now` to one `list` of charges.
    ///
    /// Returns the charges that remain to be evaluated, and the overrides that were applied, in the
    /// plan's order. Removes from `positions` the charges that are not sent to the store.
    pub(super) fn apply_overrides(
        &self,
        now: Timestamp,
        planned: Vec<PlannedCharge>,
        list: fn(usize) -> Evaluated,
        positions: &mut ChargePositions,
    ) -> (Resolved, Vec<AppliedOverride>) {
        if self.overrides.is_empty() {
            return (Resolved::Charges(planned), Vec::new());
        }
        let (mut charged, mut blocked, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
        let (mut charged_at, mut blocked_at) = (Vec::new(), Vec::new());
        let (mut applied, count) = (Vec::new(), planned.len());
        for (index, mut one) in planned.into_iter().enumerate() {
            let ruled = self.overrides.resolve(&one.limit, &one.subject, &self.key, now);
            if let Some((_, said)) = &ruled {
                let (limit, said) = (Arc::clone(&one.limit), Arc::clone(said));
                applied.push(AppliedOverride { position: positions.of(list(index)), limit, said });
            }
            match ruled.map(|(ruled, _)| ruled) {
                Some(ResolvedOverride::Unlimited) => continue,
                Some(ResolvedOverride::Blocked(until)) => {
                    // A client cannot wait for an override without an end.
                    let until =
                        if until == NEVER { now.after(MAX_OVERRIDE_DURATION) } else { until };
                    statuses.push(blocked_until(until, &one));
                    blocked.push(one);
                    blocked_at.push(index);
                    continue;
                }
                Some(ResolvedOverride::Limit(limit)) => one.limit = limit,
                // Already among the charges that are only counted.
                Some(ResolvedOverride::Counted) | None => {}
            }
            charged.push(one);
            charged_at.push(index);
        }
        let (resolved, kept) = match blocked.is_empty() {
            true => (Resolved::Charges(charged), charged_at),
            false => (Resolved::Blocked(blocked, statuses), blocked_at),
        };
        if kept.len() < count {
            positions.keep(list, &kept);
        }
        (resolved, applied)
    }

    /// Replaces the limits of `receipt` by the limits of overrides: a refund is not cut to the
    /// policy's smaller bucket, and a settlement can use the override's quota.
    pub(super) fn with_overridden_limits(&self, now: Timestamp, receipt: Receipt) -> Receipt {
        receipt.by(|limit, subject| {
            match self.overrides.resolve(limit, subject, &self.key, now)?.0 {
                ResolvedOverride::Limit(limit) => Some(limit),
                ResolvedOverride::Unlimited
                | ResolvedOverride::Blocked(_)
                | ResolvedOverride::Counted => None,
            }
        })
    }
}

/// Returns the status of a blocked subject: the whole limit is used until the override expires.
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
