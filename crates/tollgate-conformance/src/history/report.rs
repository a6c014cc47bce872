//! The result of checking a history.

use std::fmt;

/// The largest number of violations that a report contains. Further violations are only counted.
pub const MAX_VIOLATIONS: usize = 100;
/// The largest number of violations that are printed.
const PRINTED: usize = 10;

/// A rule that a history must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The units that were admitted and not refunded never exceed the quota.
    Quota,
    /// A window has one reset, and ends neither early nor late.
    Reset,
    /// Every unit is granted to only one caller: no two charges count the same units.
    Interval,
    /// An answer includes all calls that were answered before its request was sent.
    Order,
    /// The decision, the used and remaining units, and the times of an answer are consistent.
    Reading,
    /// Only charged units count as used. A refused or unanswered call accounts for at most its own
    /// units.
    Refusal,
    /// A refund returns at most the units of its charge, only once, and only while the charge
    /// counts.
    Refund,
    /// A settlement refunds or charges at most the difference between its cost and its reservation,
    /// only once.
    Settlement,
    /// The units that the fallback admits stay within the bound.
    Fallback,
    /// The units that nodes have leased and not used stay within the bound.
    Lease,
}

/// A violation of a rule. A correct store never causes a violation.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The violated rule.
    pub rule: Rule,
    /// The limit's name.
    pub limit: String,
    /// The subject in readable form.
    pub subject: String,
    /// The description of the error, with its numbers.
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
    /// The number of calls in the history.
    pub calls: u64,
    /// The number of calls that the store admitted, or that charged nothing.
    pub admitted: u64,
    /// The number of calls that the store refused.
    pub refused: u64,
    /// The number of calls that were certainly not executed.
    pub not_carried_out: u64,
    /// The number of calls with an unknown outcome.
    pub unknown: u64,
    /// The number of calls that a node answered from its deny cache.
    pub remembered: u64,
    /// The number of calls that another source answered, such as the fallback.
    pub fallback: u64,
    /// The number of calls that were made but not recorded. A history is sound only if this number
    /// is 0.
    pub unrecorded: u64,
    /// The number of windows of fixed window limits that were found.
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
    /// Panics with the report if the history is not sound.
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
