//! The result of the check.

use std::fmt;

/// The most violations that a report contains. Further ones are only counted.
pub const MAX_VIOLATIONS: usize = 100;
/// The most violations that are printed.
const PRINTED: usize = 10;

/// A rule that a history must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The admitted cost that was not refunded never exceeds the quota.
    Quota,
    /// The rule that a window has one reset, and ends neither early nor late.
    Reset,
    /// Every unit is granted to one caller: no two charges count the same units.
    Interval,
    /// The rule that an answer includes all calls that were answered before its request was sent.
    Order,
    /// An answer is consistent: its decision, used and remaining units, and times.
    Reading,
    /// Only charged units are used: a refused or unanswered call accounts for at most its own
    /// units.
    Refusal,
    /// A refund returns the units of its charge, once, and while the charge is in force.
    Refund,
    /// A settlement refunds and charges at most the difference between its cost and its
    /// reservation, once.
    Settlement,
    /// The rule that the fallback stays within its bound.
    Fallback,
    /// The rule that the units that nodes have leased and not used are within their bound.
    Lease,
}

/// A violation, which no correct store causes.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The violated rule.
    pub rule: Rule,
    /// The limit's name.
    pub limit: String,
    /// The subject in readable form.
    pub subject: String,
    /// The error, with its numbers.
    pub what: String,
    /// The one or two answers that show the violation.
    pub events: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, limit, subject, what, events } = self;
        write!(f, "{rule:?}: {limit} of {subject}: {what}")?;
        events.iter().try_for_each(|event| write!(f, "\n    {event}"))
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Calls in the history.
    pub calls: u64,
    /// Calls that the store admitted, or that charged nothing.
    pub admitted: u64,
    /// Calls that the store refused.
    pub refused: u64,
    /// Calls that were certainly not executed.
    pub not_carried_out: u64,
    /// Calls whose outcome is unknown.
    pub unknown: u64,
    /// Calls that a node answered from its deny cache.
    pub remembered: u64,
    /// Calls that another source than the store answered.
    pub fallback: u64,
    /// Calls that were made but not recorded. There must be none.
    pub unrecorded: u64,
    /// The number of windows that were found, for fixed windows.
    pub windows: u64,
    /// The number of violations.
    pub violated: u64,
    /// The first [`MAX_VIOLATIONS`] violations.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Returns whether the complete history was recorded and has no violations.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.violated == 0 && self.unrecorded == 0
    }

    /// Asserts that the history [is sound](Self::is_sound).
    ///
    /// # Panics
    /// With the report, if it is not.
    #[track_caller]
    pub fn assert_sound(&self) {
        assert!(self.is_sound(), "the history is not sound\n{self}");
    }

    pub(super) fn add(&mut self, violation: Violation) {
        self.violated += 1;
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(violation);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls: {} admitted, {} refused, {} not carried out, {} unknown, {} remembered, \
             {} by the fallback; {} windows; {} violations",
            self.calls,
            self.admitted,
            self.refused,
            self.not_carried_out,
            self.unknown,
            self.remembered,
            self.fallback,
            self.windows,
            self.violated,
        )?;
        if self.unrecorded > 0 {
            write!(
                f,
                "\n{} calls were not recorded: give the recorder more room",
                self.unrecorded
            )?;
        }
        self.violations
            .iter()
            .take(PRINTED)
            .try_for_each(|violation| write!(f, "\n{violation}"))?;
        match self.violated.saturating_sub(PRINTED as u64) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}
