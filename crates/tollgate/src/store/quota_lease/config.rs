//! How large leases are, and who gets one.

use std::num::{NonZeroU32, NonZeroU64};

use tollgate_core::{Limit, Millis};

/// The most units of one lease, unless another number is set.
pub const MAX_LEASE_UNITS: u64 = 16_384;

/// The limits and subjects of which a node has leases at one time, unless another number is set.
/// One more is decided by the store until there is a place again.
pub const DEFAULT_LEASES: usize = 4_096;

/// The charges within [`HOT_WINDOW`] after which a limit and subject are worth a lease, unless
/// another number is set.
pub const HOT_THRESHOLD: u32 = 4;

/// Within so much time.
pub const HOT_WINDOW: Millis = Millis::new(100);

/// A lease that is used up sooner is followed by one of twice its size.
pub const FAST_EXHAUSTION: Millis = Millis::new(100);

/// How many times the cost of the charge that began it a first lease holds.
pub(super) const FIRST_CHARGES: u64 = 8;

/// The largest part of what is left of a limit that a node takes, for each node: all of them
/// together hold no more than a quarter.
const MAX_COMBINED_SHARE: NonZeroU64 = NonZeroU64::new(4).unwrap();

/// How large leases are, and who gets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// The most units of one lease.
    pub at_most: u64,
    /// A lease is no more than what is left, divided by this.
    pub share: NonZeroU64,
    /// The charges within [`HOT_WINDOW`] after which a lease begins.
    pub hot_after: u32,
}

impl LeaseConfig {
    /// For one of `nodes` nodes: all of them together hold at most a quarter of what is left.
    #[must_use]
    pub const fn for_nodes(nodes: NonZeroU32) -> Self {
        let share = MAX_COMBINED_SHARE.saturating_mul(NonZeroU64::new(nodes.get() as u64).unwrap());
        Self { at_most: MAX_LEASE_UNITS, share, hot_after: HOT_THRESHOLD }
    }

    /// The most units of `limit` and one subject that a node has taken and not used.
    #[must_use]
    pub const fn max_unused_units(&self, limit: &Limit) -> u64 {
        self.part_of(limit.capacity())
    }

    /// The most units of a lease where `left` are left.
    pub(super) const fn part_of(&self, left: u64) -> u64 {
        let part = left / self.share.get();
        if part < self.at_most { part } else { self.at_most }
    }
}

impl Default for LeaseConfig {
    /// For two nodes.
    fn default() -> Self {
        Self::for_nodes(NonZeroU32::new(2).unwrap_or(NonZeroU32::MIN))
    }
}
