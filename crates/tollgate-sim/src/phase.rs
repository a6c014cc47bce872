//! The phases of a run.

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The phase before the first fault.
    Before,
    /// The phase in which faults happen.
    During,
    /// The phase after the last fault, in which nodes begin to use the store again.
    Recovering,
    /// The phase after all nodes use the store again. No faults happen.
    After,
}

impl Phase {
    /// Returns the name of a subject of this phase.
    pub(crate) fn subject(self, number: u64) -> String {
        format!("{}-{number}", self.name())
    }

    /// Returns the number of a subject of this phase. Returns `None` if the subject has no number.
    pub(crate) fn number_of(self, subject: &str) -> Option<u64> {
        subject.strip_prefix(self.name())?.strip_prefix('-')?.parse().ok()
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Before => "Before",
            Self::During => "During",
            Self::Recovering => "Recovering",
            Self::After => "After",
        }
    }

    /// Returns whether limits are exact in this phase.
    pub(crate) const fn is_calm(self) -> bool {
        matches!(self, Self::Before | Self::After)
    }
}
