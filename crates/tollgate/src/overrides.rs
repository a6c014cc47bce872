//! Another word than the policy's for some subjects, for a time.
//!
//! An [`Override`] gives subjects another quota, lets them pass, or blocks them, until it ends. All
//! that are in force are one small [`OverrideTable`] that every node holds in memory: a decision asks no
//! other process for it, and costs one relaxed load while there are none.

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

/// The longest that an override is in force.
pub const MAX_OVERRIDE_DURATION: Millis = Millis::from_secs(366 * 24 * 3_600);

/// The most bytes of a reason.
pub const MAX_REASON: usize = 500;

/// Another word than the policy's, for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// OverrideTarget and what it is about. There is one override of each target.
    pub target: OverrideScope,
    /// What is decided instead.
    pub effect: Effect,
    /// Its first moment without meaning.
    pub expires_at: Timestamp,
    /// Why it was made, for those who run it: clients are never told.
    pub reason: Box<str>,
}

/// OverrideTarget and what an override is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideScope {
    /// The name of the only limit that it is about; all that apply to these subjects if none.
    pub limit: Option<Box<str>>,
    /// Whose it is.
    pub target: OverrideTarget,
}

/// Whose an override is. Who is named by several is given what is said of the subject, then of
/// one of its values, then of the smallest network, then of everybody; of one limit before all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideTarget {
    /// One [veiled](Subject::veiled) subject: that of limits that count by exactly these dimensions.
    /// [`OverrideTarget::subject`] puts its pairs in order.
    Subject(Subject),
    /// Every subject that has this pair, a veiled subject of one dimension.
    Value(Subject),
    /// Every subject whose address lies there.
    Network {
        /// The dimension that the address is of.
        dimension: Box<str>,
        /// Where it lies. One that is narrower than what the dimension keeps meets nobody.
        network: Network,
    },
    /// Every subject: a switch of the limit itself.
    Everybody,
    /// Every request that the rule of this name matches: a switch of the rule. It goes with no limit,
    /// and with [`Effect::Unlimited`] or [`Effect::Counted`].
    Rule(Box<str>),
    /// Every request that would be shed: a switch of load shedding, with the same effects.
    Shedding(SheddingTarget),
}

/// What sheds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SheddingTarget {
    /// Everything that does.
    All,
    /// The fleet, by what all nodes have in flight together.
    Fleet,
    /// Each node, by its own load.
    Worker,
}

impl SheddingTarget {
    /// Each of them.
    pub const VARIANTS: [Self; 3] = [Self::All, Self::Fleet, Self::Worker];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Fleet => "fleet",
            Self::Worker => "worker",
        }
    }
}

/// What is decided instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// By this quota, in the window that runs ([`Limit::with_quota`]). A limit that cannot count it
    /// goes on with its own.
    Quota {
        /// Units per window.
        quota: u64,
        /// What a token bucket holds.
        burst: Option<u64>,
    },
    /// Every request passes the limit, and nothing is counted.
    Unlimited,
    /// No request passes until the override ends, and nothing is counted.
    Blocked,
    /// It is counted and judged as by a rule in shadow mode, and every request passes the limit.
    Counted,
}

impl OverrideTarget {
    /// The subject that `veiled` is, in whatever order its pairs are.
    #[must_use]
    pub fn subject(veiled: &Subject) -> Self {
        Self::Subject(in_order(veiled))
    }
}

/// A veiled subject with its pairs in the order of their encodings.
fn in_order(veiled: &Subject) -> Subject {
    let mut pairs: Vec<&[u8]> = veiled.encodings().map(|(_, pair)| pair).collect();
    if pairs.is_sorted() {
        return veiled.clone();
    }
    pairs.sort_unstable();
    // Pairs one after the other are a whole encoding.
    Subject::from_bytes(&pairs.concat()).unwrap_or_default()
}

impl OverrideScope {
    /// Whether it is about `limit`, whomever it limits.
    #[must_use]
    pub fn applies_to(&self, limit: &Limit) -> bool {
        self.limit.as_ref().is_none_or(|name| **name == *limit.name())
    }
}

#[cfg(test)]
mod tests;
