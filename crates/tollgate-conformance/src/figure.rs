//! Measured figures with their bounds, in which every fault test reports its result.

use std::fmt;
use std::thread;

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The figure must be at most this bound. A larger figure violates a guarantee.
    AtMost(u64),
    /// The figure has no bound. The number is printed next to the figure for comparison.
    Context(u64),
    /// The figure must be at least this number. A smaller figure means that the fault did not
    /// occur, so the test proved nothing.
    FaultSeen(u64),
}

/// A figure with its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The name of the figure, with its unit.
    pub what: &'static str,
    /// The measured value.
    pub seen: u64,
    /// The bound of the value.
    pub bound: Bound,
}

/// Prints `figures` in one line under the name of the test, and compares each figure with its
/// bound.
///
/// # Panics
/// Panics with the printed line if a figure exceeds its bound or the fault did not occur. Also
/// panics if no figure shows that the fault occurred, or if no figure has a bound, because such a
/// test proves nothing.
#[track_caller]
pub fn assert_held(figures: &[Figure]) {
    let texts: Vec<_> = figures.iter().map(ToString::to_string).collect();
    let texts = texts.join("; ");
    let current = thread::current();
    println!("{}: {texts}", current.name().unwrap_or("a test"));
    let has = |kind: fn(&Bound) -> bool| figures.iter().any(|figure| kind(&figure.bound));
    assert!(
        has(|bound| matches!(bound, Bound::FaultSeen(_))),
        "no figure shows that the fault occurred: {texts}"
    );
    assert!(has(|bound| matches!(bound, Bound::AtMost(_))), "no figure has a bound: {texts}");
    for figure in figures {
        assert!(figure.holds(), "{figure} does not hold: {texts}");
    }
}

impl Figure {
    /// Creates a figure that must be at most `bound`.
    #[must_use]
    pub const fn at_most(what: &'static str, seen: u64, bound: u64) -> Self {
        Self { what, seen, bound: Bound::AtMost(bound) }
    }

    /// Creates a figure without a bound. `number` is printed next to the figure for comparison.
    #[must_use]
    pub const fn context(what: &'static str, seen: u64, number: u64) -> Self {
        Self { what, seen, bound: Bound::Context(number) }
    }

    /// Creates a figure that shows that the fault occurred. The figure must be at least one.
    #[must_use]
    pub const fn fault_seen(what: &'static str, seen: u64) -> Self {
        Self { what, seen, bound: Bound::FaultSeen(1) }
    }

    /// Creates a figure that shows that the fault occurred. The figure must be at least one, and at
    /// least `per_mille` thousandths of `of`, for example of the number of all calls.
    #[must_use]
    pub const fn share_seen(what: &'static str, seen: u64, of: u64, per_mille: u64) -> Self {
        let least = of.saturating_mul(per_mille) / 1_000;
        Self { what, seen, bound: Bound::FaultSeen(if least > 0 { least } else { 1 }) }
    }

    /// Returns whether the figure is within its bound.
    #[must_use]
    pub const fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.seen <= most,
            Bound::Context(_) => true,
            Bound::FaultSeen(least) => self.seen >= least,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "≤ {most}"),
            Self::Context(number) => write!(f, "({number}, not judged)"),
            Self::FaultSeen(least) => write!(f, "≥ {least}"),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.what, self.seen, self.bound)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn what_is_within_its_bounds_and_bit_is_held() {
        let slow = Figure::context("ms", 9, 5);
        assert_held(&[Figure::fault_seen("cuts", 1), Figure::at_most("errors", 3, 3), slow]);
    }

    #[test]
    fn a_fault_that_bites_too_seldom_did_not_bite() {
        assert!(Figure::share_seen("decisions alone", 500, 1_000, 500).holds());
        assert!(!Figure::share_seen("decisions alone", 499, 1_000, 500).holds());
        assert!(!Figure::share_seen("decisions alone", 0, 1, 1).holds());
    }

    #[test]
    fn beyond_a_bound_without_a_bite_or_without_a_figure_nothing_is_held() {
        let (bit, idle) = (Figure::fault_seen("cuts", 1), Figure::fault_seen("cuts", 0));
        let (within, beyond) = (Figure::at_most("errors", 0, 0), Figure::at_most("errors", 1, 0));
        for figures in
            [vec![bit.clone(), beyond], vec![idle, within.clone()], vec![bit], vec![within], vec![]]
        {
            catch_unwind(|| assert_held(&figures)).expect_err("not held");
        }
    }
}
