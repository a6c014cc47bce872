//! The configuration of leases: their size, and the rate of charges at which a limit and subject
//! get a lease.

use std::num::{NonZeroU32, NonZeroU64};

use tollgate_core::{Limit, Millis};

/// The default maximum units of one lease.
pub const MAX_LEASE_UNITS: u64 = 16_384;

/// The default maximum number of limits and subjects with a lease on one node. The store decides
/// charges on further limits and subjects until an entry is free.
pub const DEFAULT_LEASES: usize = 4_096;

/// The default number of charges within [`HOT_WINDOW`] after which a limit and subject get a lease.
pub const HOT_THRESHOLD: u32 = 4;

/// The period in which charges are counted for [`HOT_THRESHOLD`].
pub const HOT_WINDOW: Millis = Millis::new(100);

/// The time limit for doubling leases. If a lease is used up within this time, the next lease is
/// twice as large.
pub const FAST_EXHAUSTION: Millis = Millis::new(100);

/// The size of a first lease, as a multiple of the cost of the charge that started it.
pub(super) const FIRST_CHARGES: u64 = 8;

/// The divisor for the remaining units on a single node. The divisor is multiplied by the number of
/// nodes, so the leases of all nodes together contain at most a quarter of the remaining units.
const MAX_COMBINED_SHARE: NonZeroU64 = NonZeroU64::new(4).unwrap();

/// The size of leases, and the rate of charges above which a subject gets a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// The maximum units of one lease.
    pub at_most: u64,
    /// The divisor for the size of a lease. A lease has at most the remaining units divided by this
    /// number.
    pub share: NonZeroU64,
    /// The number of charges within [`HOT_WINDOW`] after which a limit and subject get a lease.
    pub hot_after: u32,
}

impl LeaseConfig {
    /// Returns the configuration for one of `nodes` nodes. All nodes together lease at most a
    /// quarter of the remaining units.
    #[must_use]
    pub const fn for_nodes(nodes: NonZeroU32) -> Self {
        let share = MAX_COMBINED_SHARE.saturating_mul(NonZeroU64::new(nodes.get() as u64).unwrap());
        Self { at_most: MAX_LEASE_UNITS, share, hot_after: HOT_THRESHOLD }
    }

    /// Returns the maximum units of `limit` and one subject that a node has taken and not used.
    #[must_use]
    pub const fn max_unused_units(&self, limit: &Limit) -> u64 {
        self.part_of(limit.capacity())
    }

    /// Returns the maximum units of a lease when `left` units remain.
    pub(super) const fn part_of(&self, left: u64) -> u64 {
        let part = left / self.share.get();
        if part < self.at_most { part } else { self.at_most }
    }
}

impl Default for LeaseConfig {
    /// Returns the configuration for a deployment of two nodes.
    fn default() -> Self {
        Self::for_nodes(NonZeroU32::new(2).unwrap_or(NonZeroU32::MIN))
    }
}
