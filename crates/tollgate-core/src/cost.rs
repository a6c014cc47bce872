//! How many units a charge is about.

use crate::time::MAX_EXACT;

/// What a charge takes: whole units, 0 … 2^53 − 1. Zero is a peek.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Nothing: looks at a limit without changing it.
    pub const PEEK: Self = Self(0);
    /// One unit, what a request costs unless a policy says otherwise.
    pub const ONE: Self = Self(1);

    /// A cost of `units`, or `None` above 2^53 − 1.
    #[must_use]
    pub const fn new(units: u64) -> Option<Self> {
        if units > MAX_EXACT { None } else { Some(Self(units)) }
    }

    /// The whole units.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// What must be free for this cost to be admitted: a peek asks for one unit.
    #[must_use]
    pub const fn needed(self) -> u64 {
        if self.0 == 0 { 1 } else { self.0 }
    }

    /// A cost of `units`, at most 2^53 − 1.
    #[must_use]
    pub const fn up_to(units: u64) -> Self {
        Self(if units > MAX_EXACT { MAX_EXACT } else { units })
    }

    /// Both costs together, at most 2^53 − 1.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::up_to(self.0.saturating_add(other.0))
    }
}
