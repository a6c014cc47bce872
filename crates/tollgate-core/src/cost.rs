//! The cost of a charge.

use crate::time::MAX_EXACT;

/// The cost of a charge in whole units, 0 to 2^53 − 1. A cost of zero only reads a limit, which is
/// called a peek.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Zero: reads a limit without changing it.
    pub const PEEK: Self = Self(0);
    /// One unit, the default cost of a request.
    pub const ONE: Self = Self(1);

    /// Returns a cost of `units`, or `None` if `units` is above 2^53 − 1.
    #[must_use]
    pub const fn new(units: u64) -> Option<Self> {
        if units > MAX_EXACT { None } else { Some(Self(units)) }
    }

    /// Returns the units.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the units that must be free so that this cost fits: the cost itself, or one unit for
    /// a peek.
    #[must_use]
    pub const fn needed(self) -> u64 {
        if self.0 == 0 { 1 } else { self.0 }
    }

    /// Returns a cost of `units`. If `units` is above 2^53 − 1, the cost is 2^53 − 1.
    #[must_use]
    pub const fn up_to(units: u64) -> Self {
        Self(if units > MAX_EXACT { MAX_EXACT } else { units })
    }

    /// Returns the sum of both costs, but at most 2^53 − 1.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::up_to(self.0.saturating_add(other.0))
    }
}
