//! A figure beside its bound.

use std::fmt;

/// What a figure is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// More breaks a promise.
    AtMost(u64),
    /// Told beside this, and not judged.
    Beside(u64),
    /// Fewer mean that the fault did not bite, so that nothing was shown.
    Bites,
}

/// A figure beside its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    /// What was counted, with its unit.
    pub(crate) what: &'static str,
    /// What was seen.
    pub(crate) seen: u64,
    /// What it is held against.
    pub(crate) bound: Bound,
}

impl Figure {
    /// What may be so much and no more.
    pub(crate) const fn at_most(what: &'static str, seen: u64, bound: u64) -> Self {
        Self { what, seen, bound: Bound::AtMost(bound) }
    }

    /// What shows that the fault happened to the nodes: at least one.
    pub(crate) const fn bites(what: &'static str, seen: u64) -> Self {
        Self { what, seen, bound: Bound::Bites }
    }

    /// Whether it is within its bound.
    pub(crate) const fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.seen <= most,
            Bound::Beside(_) => true,
            Bound::Bites => self.seen > 0,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "≤ {most}"),
            Self::Beside(most) => write!(f, "({most}, not judged)"),
            Self::Bites => f.write_str("≥ 1"),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.what, self.seen, self.bound)
    }
}
