//! A rule: the requests that it matches, the limits on which it charges them, and the way in which
//! it enforces these limits.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::matching::RequestMatch;
use super::metered::MeteredLimit;
use super::priority::Priority;
use super::queue::Queue;
use crate::cost::Cost;
use crate::refusal::RefusalSettings;
use crate::status_set::StatusSet;

/// A rule: the requests that it matches and the limits on which it charges them.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The name of the rule, which is unique in the policy.
    pub name: Arc<str>,
    /// The requests that the rule matches.
    pub matches: RequestMatch,
    /// The limits that a matching request is charged on.
    pub limits: Vec<LimitRef>,
    /// The limits on which the cost is measured when the response is known. Each limit occurs at
    /// most once. A listener that receives the response reserves units when the request arrives,
    /// and settles them with the response. Other listeners charge the units that would be reserved.
    pub metered: Vec<MeteredLimit>,
    /// Whether the rule refuses requests.
    pub mode: RuleMode,
    /// The time at which the rule charges a request.
    pub charge: ChargeOn,
    /// The fallback while the store does not answer.
    pub on_failure: OnFailure,
    /// The priority of the rule's requests for load shedding. `None` derives the priority from the
    /// method.
    pub priority: Option<Priority>,
    /// The queue in which requests wait for a permit. `None` means that requests without a permit
    /// are refused at once.
    pub queue: Option<Queue>,
    /// The statuses of responses for which the charges of the rule are refunded. `None` means the
    /// statuses in [`ResponseSettings::refund_statuses`](super::ResponseSettings::refund_statuses).
    pub refund: Option<Arc<StatusSet>>,
    /// The response to a refused request, unless the limit that refused has its own response.
    pub refusal: Option<Arc<RefusalSettings>>,
}

impl Rule {
    /// Creates a rule that refuses, charges on arrival, and has the fallback [`OnFailure::Local`].
    /// The rule has no queue. The priority of its requests depends on their methods.
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

/// A limit on which a rule charges requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRef {
    /// The index of the limit in [`Policy::limits`](super::Policy::limits).
    pub limit: usize,
    /// The cost of one request, or the units to reserve if the response determines the cost.
    pub cost: Cost,
}

/// Whether a rule refuses requests or only counts the requests that it would refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleMode {
    /// The rule refuses requests.
    #[default]
    Enforce,
    /// The rule charges requests in a separate store call, evaluates the charges, and never refuses
    /// a request.
    Shadow,
}

/// The time at which a request is charged. The variants are ordered from the less exact to the more
/// exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargeOn {
    /// Requests are charged on completion, unless the response is free. On arrival, the limits are
    /// only read, and a replica can answer such a read. Concurrent requests can together exceed a
    /// limit that has room for only one of them.
    Completion,
    /// Requests are charged on arrival. If the response turns out to be free, the charge is
    /// refunded. Limits are exact with this variant.
    #[default]
    Arrival,
}

/// The fallback: what decides about a request while the store does not answer. The variants are
/// ordered from the least strict to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnFailure {
    /// The request is admitted. With this fallback, an outage of the limiter is not an outage of
    /// the service.
    Allow,
    /// This node decides without the store. It uses its share of each limit and the last status
    /// that it received. If the application configured no local fallback, the node admits the
    /// request.
    #[default]
    Local,
    /// The request is refused with 503. This fallback is for endpoints such as sign-in, where
    /// admitting unlimited requests is worse than refusing all requests.
    Deny,
}
