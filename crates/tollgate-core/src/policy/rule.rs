//! A rule: the requests that it matches, the limits that it charges, and how it enforces them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::matching::RequestMatch;
use super::metered::MeteredLimit;
use super::priority::Priority;
use super::queue::Queue;
use crate::cost::Cost;
use crate::refusal::RefusalSettings;
use crate::status_set::StatusSet;

/// A rule: the requests that it matches and the limits that it charges.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The name, unique in the policy.
    pub name: Arc<str>,
    /// The requests that the rule matches.
    pub matches: RequestMatch,
    /// The limits that a matching request is charged on.
    pub limits: Vec<LimitRef>,
    /// The limits with a cost that is read from the response, each at most once. A component that
    /// sees the response reserves units when the request arrives; others charge the amount of the
    /// reservation.
    pub metered: Vec<MeteredLimit>,
    /// Whether the rule refuses requests.
    pub mode: RuleMode,
    /// When the rule charges.
    pub charge: ChargeOn,
    /// The fallback while the store does not answer.
    pub on_failure: OnFailure,
    /// The priority of the rule's requests for load shedding; `None` derives it from the method.
    pub priority: Option<Priority>,
    /// How long the rule's requests wait for a permit; `None` refuses them at once.
    pub queue: Option<Queue>,
    /// The statuses of responses for which the charges of the rule are refunded; `None` for those
    /// of [`ResponseSettings::refund_statuses`](super::ResponseSettings::refund_statuses).
    pub refund: Option<Arc<StatusSet>>,
    /// The response to a refusal, unless the limit that refused has one of its own.
    pub refusal: Option<Arc<RefusalSettings>>,
}

impl Rule {
    /// Creates a rule that refuses, charges on arrival, and falls back to this node's share of each
    /// limit. It has no queue, and its requests have the priority of their methods.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, matches: RequestMatch, limits: Vec<LimitRef>) -> Self {
        let (mode, charge) = (RuleMode::default(), ChargeOn::default());
        let (on_failure, priority, queue, refund) = (OnFailure::default(), None, None, None);
        let (name, metered, refusal) = (name.into(), Vec::new(), None);
        Self {
            name,
            matches,
            limits,
            metered,
            mode,
            charge,
            on_failure,
            priority,
            queue,
            refund,
            refusal,
        }
    }
}

/// A limit that a rule charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRef {
    /// Index into [`Policy::limits`](super::Policy::limits).
    pub limit: usize,
    /// The cost of one request, or the units to reserve if the response determines the cost.
    pub cost: Cost,
}

/// Whether a rule refuses requests or only counts the requests that it would refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleMode {
    /// Refuses requests.
    #[default]
    Enforce,
    /// Charges in a separate store call, evaluates, and never refuses.
    Shadow,
}

/// When a request is charged. Variants are ordered by exactness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargeOn {
    /// On completion, unless the response is free. On arrival the limits are only peeked, which a
    /// replica can answer. Concurrent requests may together exceed a limit that has room for one.
    Completion,
    /// Requests are charged on arrival, and refunded if their response turns out to be free. This
    /// is exact.
    #[default]
    Arrival,
}

/// What happens to a request while the store does not answer. Variants are ordered by strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnFailure {
    /// The request is admitted: an outage of the limiter does not become one of the service.
    Allow,
    /// This node decides alone, with its share of each limit and the last status that it received.
    /// It admits the request if no fallback is configured.
    #[default]
    Local,
    /// The request is refused with 503, for endpoints where unlimited requests are worse, such as
    /// sign-in.
    Deny,
}
