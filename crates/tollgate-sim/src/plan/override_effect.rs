//! The overrides that may be in force in a world.

/// The effect of an override on the second limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverrideEffect {
    /// Another quota.
    Quota(u64),
    /// Every request is admitted, and nothing is counted.
    Unlimited,
    /// Every request is refused, and nothing is counted.
    Blocked,
    /// Requests are counted, and the limit refuses none.
    Counted,
}

/// An override that may be in force while faults last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedOverride {
    /// The number of the subject to which the override applies, or `None` for all subjects.
    pub subject: Option<u64>,
    /// The effect of the override.
    pub effect: OverrideEffect,
    /// The time at which an operator sets the override, in ms since the beginning of the faults.
    pub from: u64,
    /// The time from which no node applies the override, or `None` if it has no end.
    pub until: Option<u64>,
}

impl GrantedOverride {
    /// Returns whether the override applies to a subject. `subject` is its number, or `None` for a
    /// subject without overrides of its own.
    pub(crate) fn applies_to(&self, subject: Option<u64>) -> bool {
        self.subject.is_none() || self.subject == subject
    }
}
