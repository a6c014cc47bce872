//! The finding of a scenario: the fault, and whether the stated bounds held.

use std::fmt;

use tollgate_conformance::history::Report;
use tollgate_conformance::{Bound, Figure};

/// The finding of a scenario: the fault, and whether the stated bounds held.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The description of the fault: a phrase in the past tense, such as `killed a primary`.
    pub(crate) did: &'static str,
    /// The measured figures with their bounds.
    pub(crate) figures: Vec<Figure>,
    /// The report of the history checker.
    pub(crate) checked: Report,
}

/// Whether the scenario had an effect, and whether the stated bounds held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScenarioResult {
    /// The fault had an effect, and every figure is within its bound.
    Passed,
    /// The fault had no effect, so the scenario proves nothing.
    NoEffect,
    /// A figure is beyond its bound, or the history violates a rule.
    Failed,
}

impl Finding {
    /// Returns whether the scenario had an effect, and whether the stated bounds held.
    pub(crate) fn result(&self) -> ScenarioResult {
        let broken =
            |figure: &Figure| !matches!(figure.bound, Bound::FaultSeen(_)) && !figure.holds();
        if !self.checked.is_sound() || self.figures.iter().any(broken) {
            ScenarioResult::Failed
        } else if self.figures.iter().all(Figure::holds) {
            ScenarioResult::Passed
        } else {
            ScenarioResult::NoEffect
        }
    }
}

impl fmt::Display for ScenarioResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "held",
            Self::NoEffect => "the fault did not bite",
            Self::Failed => "BROKEN",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(figures: &[Figure]) -> Finding {
        Finding { did: "nothing", figures: figures.to_vec(), checked: Report::default() }
    }

    #[test]
    fn what_breaks_a_promise_weighs_more_than_a_fault_that_did_not_bite() {
        let within = Figure::at_most("errors", 0, 0);
        let beyond = Figure::at_most("errors", 1, 0);
        let (bit, idle) = (Figure::fault_seen("cuts", 3), Figure::fault_seen("cuts", 0));
        assert_eq!(finding(&[within.clone(), bit]).result(), ScenarioResult::Passed);
        assert_eq!(finding(&[within.clone(), idle.clone()]).result(), ScenarioResult::NoEffect);
        assert_eq!(finding(&[beyond, idle]).result(), ScenarioResult::Failed);
        let mut unsound = finding(&[within]);
        unsound.checked.violated = 1;
        assert_eq!(unsound.result(), ScenarioResult::Failed);
    }
}
