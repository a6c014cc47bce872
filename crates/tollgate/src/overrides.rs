//! Overrides, which replace the policy's limits for some subjects until a given time or until an
//! operator removes them.
//!
//! An [`Override`] sets another quota for its subjects, admits their requests without a limit,
//! counts without enforcing, or blocks their requests. Every node keeps all overrides in force in
//! memory, as one small [`OverrideTable`]. A decision finds an override without a call to another
//! process. While there are no overrides, the lookup costs one relaxed load.

mod bytes;
mod change;
mod index;
mod store;
mod switches;
mod table;

use tollgate_core::policy::Network;
use tollgate_core::{Limit, Millis, Subject, Timestamp};

pub use bytes::TableError;
pub use change::{OverrideChange, OverrideStoreError};
pub use index::Overrides;
pub(crate) use index::ResolvedOverride;
pub use store::{ChangeResult, OverrideStorage, OverrideStore};
pub use table::{OverrideTable, TableVersion};

/// The most overrides that are in force at one time.
pub const MAX_OVERRIDES: usize = 10_000;

/// The longest time for which an override with an end is in force.
pub const MAX_OVERRIDE_DURATION: Millis = Millis::from_secs(366 * 24 * 3_600);

/// The time at which an override without an end expires.
pub const NEVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// The most bytes of an override's reason.
pub const MAX_REASON: usize = 500;

/// A temporary change that an administrator sets. It replaces a limit for some subjects, turns a
/// rule off or to shadow mode, or turns load shedding off or to shadow mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The requests to which the override applies. There is at most one override for each scope.
    pub target: OverrideScope,
    /// The change for the requests that the target selects.
    pub effect: Effect,
    /// The time from which the override no longer applies; [`NEVER`] if it has no end.
    pub expires_at: Timestamp,
    /// The reason, for operators. Clients never receive it.
    pub reason: Box<str>,
}

/// The scope of an override: its target, and either one limit of the target or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideScope {
    /// The name of the limit that the override applies to; `None` for all limits of the target.
    pub limit: Option<Box<str>>,
    /// The subjects, the rule or the part of load shedding that the override applies to.
    pub target: OverrideTarget,
}

/// The target of an override. If several overrides match a subject, the most specific target
/// applies: first the subject, then a value, then the smallest network, then everybody. For the
/// same target, an override of one limit takes precedence over an override of all limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideTarget {
    /// One [veiled](Subject::veiled) subject. A subject is a list of pairs of a name and a value,
    /// such as `ip` and an address. The override applies to a limit if the subjects of this limit
    /// have exactly the same names. [`OverrideTarget::subject`] sorts the pairs.
    Subject(Subject),
    /// Every subject that contains this pair of a name and a value. The pair is given as a veiled
    /// subject with only this pair.
    Value(Subject),
    /// Every subject with an address in this network.
    Network {
        /// The name of the pair with the address, such as `ip`.
        dimension: Box<str>,
        /// The network. If its prefix is longer than the prefix that the policy keeps of an
        /// address, the network matches no subject.
        network: Network,
    },
    /// Every subject. Such an override is a kill switch for its limit, or for all limits if it
    /// names none.
    AllSubjects,
    /// Every request that matches the rule of this name. The override turns the rule off
    /// ([`Effect::Unlimited`]) or to shadow mode ([`Effect::Counted`]), and names no limit.
    Rule(Box<str>),
    /// Every request that would be shed. The override turns load shedding off
    /// ([`Effect::Unlimited`]) or to shadow mode ([`Effect::Counted`]), and names no limit.
    Shedding(SheddingTarget),
}

/// The part of load shedding that an override turns off or to shadow mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SheddingTarget {
    /// Both parts: the load shedding of the fleet, and the load shedding of each node by its own
    /// load.
    All,
    /// Load shedding of the fleet, by the number of requests that all nodes together have in
    /// flight.
    Fleet,
    /// Load shedding of each node, by its own load.
    Worker,
}

impl SheddingTarget {
    /// All variants.
    pub const VARIANTS: [Self; 3] = [Self::All, Self::Fleet, Self::Worker];

    /// Returns the name: `all`, `fleet` or `worker`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Fleet => "fleet",
            Self::Worker => "worker",
        }
    }
}

/// The way in which an override changes the decisions on the requests in its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Replaces the quota, from the running window on ([`Limit::with_quota`]). If the limit cannot
    /// count this quota, the limit keeps its own quota.
    Quota {
        /// The new quota: units per window.
        quota: u64,
        /// The new burst of a token bucket. If the value is `None`, a bucket with a burst equal to
        /// its old quota gets the new quota as burst, and any other bucket keeps its burst.
        burst: Option<u64>,
    },
    /// The limit admits every request and counts nothing.
    Unlimited,
    /// The limit refuses every request until the override expires, and counts nothing.
    Blocked,
    /// The limit is counted and evaluated as in a rule in shadow mode, and admits every request.
    Counted,
}

impl Override {
    /// Returns the time at which the override ends, in seconds since the Unix epoch, rounded up.
    /// Returns `None` if the override has no end.
    #[must_use]
    pub fn ends_at(&self) -> Option<u64> {
        (self.expires_at != NEVER).then(|| self.expires_at.as_secs_ceil())
    }
}

impl OverrideTarget {
    /// Returns the target for the subject `veiled`. The order of the subject's pairs does not
    /// matter.
    #[must_use]
    pub fn subject(veiled: &Subject) -> Self {
        Self::Subject(in_order(veiled))
    }
}

/// Returns a veiled subject with its pairs sorted by their encodings.
fn in_order(veiled: &Subject) -> Subject {
    let mut pairs: Vec<&[u8]> = veiled.encodings().map(|(_, pair)| pair).collect();
    if pairs.is_sorted() {
        return veiled.clone();
    }
    pairs.sort_unstable();
    // Concatenated pairs are always a valid encoding.
    Subject::from_bytes(&pairs.concat()).unwrap_or_default()
}

impl OverrideScope {
    /// Returns whether the override applies to `limit`. Does not compare the subject.
    #[must_use]
    pub fn applies_to(&self, limit: &Limit) -> bool {
        self.limit.as_ref().is_none_or(|name| **name == *limit.name())
    }
}

#[cfg(test)]
mod tests;
