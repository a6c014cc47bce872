//! What overrides make of what the policy planned.

use std::sync::Arc;

use tollgate_core::policy::Planned;
use tollgate_core::{Fit, Limit, Standing, Store, Subject, Timestamp};

use super::Limiter;
use crate::overrides::{Overrides, Ruled};

/// What overrides make of a plan.
pub(super) enum Overridden {
    /// This is charged instead.
    Planned(Vec<Planned>),
    /// Nothing is charged: these are blocked, until their limits' standings say.
    Blocked(Vec<Planned>, Vec<Standing>),
}

impl<S: Store> Limiter<S> {
    /// The overrides that are in force.
    #[must_use]
    pub const fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }

    /// What is to be charged in the place of `planned`.
    pub(super) fn overridden(&self, now: Timestamp, planned: Vec<Planned>) -> Overridden {
        if self.overrides.are_none() {
            return Overridden::Planned(planned);
        }
        let (mut charged, mut blocked, mut standings) = (Vec::new(), Vec::new(), Vec::new());
        for mut one in planned {
            match self.overrides.ruled(&one.limit, &one.subject, &self.key, now) {
                None => charged.push(one),
                Some(Ruled::Unlimited) => {}
                Some(Ruled::Limit(limit)) => {
                    one.limit = limit;
                    charged.push(one);
                }
                Some(Ruled::Blocked(until)) => {
                    standings.push(blocked_until(until, &one));
                    blocked.push(one);
                }
            }
        }
        if blocked.is_empty() {
            Overridden::Planned(charged)
        } else {
            Overridden::Blocked(blocked, standings)
        }
    }

    /// The limit by which `subject` is counted where the policy says `limit`.
    pub(super) fn limit_for(
        &self,
        now: Timestamp,
        limit: &Arc<Limit>,
        subject: &Subject,
    ) -> Option<Arc<Limit>> {
        match self.overrides.ruled(limit, subject, &self.key, now)? {
            Ruled::Limit(limit) => Some(limit),
            Ruled::Unlimited | Ruled::Blocked(_) => None,
        }
    }
}

/// The standing of who is blocked: all is used until then.
fn blocked_until(until: Timestamp, planned: &Planned) -> Standing {
    Standing {
        limit: Arc::clone(&planned.limit),
        cost: planned.cost,
        used: planned.limit.capacity(),
        remaining: 0,
        resets_at: until,
        whole_at: until,
        fit: Fit::At(until),
    }
}
