//! What the judge found.

use std::fmt;

/// The violations that a report keeps; the others are only counted.
pub const MAX_VIOLATIONS: usize = 100;
/// The violations that are printed.
const PRINTED: usize = 10;

/// What a history must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Admitted cost that was not given back never passes the quota.
    Quota,
    /// A window has one reset, and ends neither early nor late.
    Reset,
    /// Every unit is told to one caller: no two charges count the same ones.
    Interval,
    /// What was answered before something else was asked, counts in it.
    Order,
    /// An answer agrees with itself: evaluation, used, remaining and times.
    Reading,
    /// Nothing is used that nobody was charged: what was refused, or did not answer, takes at most
    /// what it may.
    Refusal,
    /// A refund gives back what its charge took, once, and while that is in force.
    Refund,
    /// A settlement gives back and takes no more than its cost and its reservation differ by, once.
    Settlement,
    /// What stands in for the store keeps its bound.
    Fallback,
    /// What nodes have taken in advance and do not use is no more than they say.
    Lease,
}

/// One thing that no sound store does.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What was not kept.
    pub rule: Rule,
    /// The limit's name.
    pub limit: String,
    /// The subject, as a person reads it.
    pub subject: String,
    /// What is wrong, with the numbers.
    pub what: String,
    /// The answers that show it: one or two.
    pub events: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, limit, subject, what, events } = self;
        write!(f, "{rule:?}: {limit} of {subject}: {what}")?;
        events.iter().try_for_each(|event| write!(f, "\n    {event}"))
    }
}

/// What was judged, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Calls in the history.
    pub calls: u64,
    /// Calls that the store admitted, or in which nothing was taken.
    pub admitted: u64,
    /// Calls that the store refused.
    pub refused: u64,
    /// Calls that certainly were not carried out.
    pub not_carried_out: u64,
    /// Calls whose outcome is unknown.
    pub unknown: u64,
    /// Calls that a node answered by what it remembers.
    pub remembered: u64,
    /// Calls that something else than the store answered.
    pub fallback: u64,
    /// Calls that were made and not recorded. There must be none.
    pub unrecorded: u64,
    /// Windows of fixed windows that were seen.
    pub windows: u64,
    /// All violations.
    pub violated: u64,
    /// The first [`MAX_VIOLATIONS`] of them.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Whether the whole history was recorded, and holds no violation.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.violated == 0 && self.unrecorded == 0
    }

    /// # Panics
    /// With the report, unless it [is sound](Self::is_sound).
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
