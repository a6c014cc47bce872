//! One rule: which requests, which limits, and how they are held to them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::matching::RequestMatch;
use super::metered::MeteredLimit;
use super::priority::Priority;
use super::queue::Queue;
use crate::cost::Cost;

/// One rule: which requests, which limits.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, unique in the policy.
    pub name: Arc<str>,
    /// Which requests it speaks of.
    pub matches: RequestMatch,
    /// What they are charged.
    pub limits: Vec<LimitRef>,
    /// Those of its limits whose cost the answer tells, each at most once. They are reserved when a
    /// request arrives, by whoever sees its answer; everybody else charges what would be reserved.
    pub metered: Vec<MeteredLimit>,
    /// Whether it refuses.
    pub mode: RuleMode,
    /// When it charges.
    pub charge: ChargeOn,
    /// What it does while the store has no answer.
    pub on_failure: OnFailure,
    /// How much its requests matter when some are shed; if it does not say, by their method.
    pub priority: Option<Priority>,
    /// How long its requests wait for a place in flight, if they do.
    pub queue: Option<Queue>,
}

impl Rule {
    /// A rule that refuses, charges when the request arrives, and for want of the store decides by
    /// this node's share. Its requests matter by their methods, and wait for nothing.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, matches: RequestMatch, limits: Vec<LimitRef>) -> Self {
        let (mode, charge) = (RuleMode::default(), ChargeOn::default());
        let (on_failure, priority, queue) = (OnFailure::default(), None, None);
        let (name, metered) = (name.into(), Vec::new());
        Self { name, matches, limits, metered, mode, charge, on_failure, priority, queue }
    }
}

/// A limit as a rule uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRef {
    /// Index into [`Policy::limits`](super::Policy::limits).
    pub limit: usize,
    /// What one request costs, or where the answer tells that, what is reserved until then.
    pub cost: Cost,
}

/// Whether a rule refuses or only counts what it would refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleMode {
    /// Refuses.
    #[default]
    Enforce,
    /// Charges and judges by itself, and lets everything pass.
    Shadow,
}

/// When a request is charged. In the order of exactness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargeOn {
    /// When its answer is known, unless that answer is free. On arrival it is only looked at, which
    /// a replica can answer: requests in flight together may pass a limit that has room for one.
    Completion,
    /// When it arrives, given back if its answer turns out free: exact.
    #[default]
    Arrival,
}

/// What becomes of a request while the store has no answer. In the order of strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnFailure {
    /// It passes: an outage of the limiter is not one of the service.
    Allow,
    /// This node decides alone, by its share of each limit and from the last status that it saw.
    /// It passes where nothing stands in for the store.
    #[default]
    Local,
    /// It is refused with 503: where passing unlimited is worse, such as sign-in.
    Deny,
}
