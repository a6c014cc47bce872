//! A figure beside its bound, as every test under faults tells what it saw.

use std::fmt;
use std::thread;

/// What a figure is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// More breaks a promise.
    AtMost(u64),
    /// Told beside this, and not judged.
    Context(u64),
    /// Fewer mean that the fault did not bite, so that nothing was shown.
    FaultSeen,
}

/// A figure beside its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What was counted, with its unit.
    pub what: &'static str,
    /// What was seen.
    pub seen: u64,
    /// What it is held against.
    pub bound: Bound,
}

/// Prints `figures` in one line under the name of the test, and holds each against its bound.
///
/// # Panics
/// With that line, if a figure is beyond its bound or the fault did not bite; and if no figure says
/// that it bit, or none has a bound, for then nothing was shown.
#[track_caller]
pub fn assert_held(figures: &[Figure]) {
    let told: Vec<_> = figures.iter().map(ToString::to_string).collect();
    let told = told.join("; ");
    let current = thread::current();
    println!("{}: {told}", current.name().unwrap_or("a test"));
    let has = |kind: fn(&Bound) -> bool| figures.iter().any(|figure| kind(&figure.bound));
    assert!(has(|bound| matches!(bound, Bound::FaultSeen)), "no figure shows that it bit: {told}");
    assert!(has(|bound| matches!(bound, Bound::AtMost(_))), "no figure has a bound: {told}");
    for figure in figures {
        assert!(figure.holds(), "{figure} does not hold: {told}");
    }
}

impl Figure {
    /// What may be so much and no more.
    #[must_use]
    pub const fn at_most(what: &'static str, seen: u64, bound: u64) -> Self {
        Self { what, seen, bound: Bound::AtMost(bound) }
    }

    /// What is told beside a number, and not judged.
    #[must_use]
    pub const fn context(what: &'static str, seen: u64, number: u64) -> Self {
        Self { what, seen, bound: Bound::Context(number) }
    }

    /// What shows that the fault happened: at least one.
    #[must_use]
    pub const fn fault_seen(what: &'static str, seen: u64) -> Self {
        Self { what, seen, bound: Bound::FaultSeen }
    }

    /// Whether it is within its bound.
    #[must_use]
    pub const fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.seen <= most,
            Bound::Context(_) => true,
            Bound::FaultSeen => self.seen > 0,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "≤ {most}"),
            Self::Context(number) => write!(f, "({number}, not judged)"),
            Self::FaultSeen => f.write_str("≥ 1"),
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
