//! Counts and logs decisions that the store did not make.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Millis, Policy, StoreError, Timestamp};

use super::Observer;
use crate::decision::Decision;

/// The shortest time between two log lines with the same cause.
pub const LOG_INTERVAL: Millis = Millis::from_secs(1);

/// Counts the decisions that the store did not make, by rule and cause. Decisions that were made
/// because the store did not answer are also logged: at most one line per cause every
/// [`LOG_INTERVAL`], with the number of decisions since the last line. Refusals from the deny cache
/// are counted and not logged, because these refusals are exact.
///
/// The observer has a row for each rule of the policy, and one last row for unknown rules and for
/// decisions that no rule planned, such as those of descriptors. When the policy is replaced, the
/// rules that remain keep their rows, and the counts of removed rules move to the last row. A
/// decision of the store costs one comparison.
#[derive(Debug)]
pub struct Degraded {
    rows: ArcSwap<Vec<Arc<Row>>>,
    /// The counts of decisions that no rule planned, and of rules that the policy does not have.
    others: [AtomicU64; CAUSES],
    lines: [Line; CAUSES],
}

/// Decisions by one rule that the store did not make, for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DegradedCount {
    /// The rule; `None` for all rules that the policy does not have, and for decisions that no rule
    /// planned.
    pub rule: Option<Arc<str>>,
    /// The decider, and why the store did not decide.
    pub source: DecisionSource,
    /// The number of decisions. A decision of several rules counts once for each rule.
    pub decisions: u64,
}

#[derive(Debug)]
struct Row {
    rule: Arc<str>,
    counts: [AtomicU64; CAUSES],
}

/// The time of the last log line of a cause, and the number of decisions since that line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The time of the last log line, in milliseconds since the epoch; zero before the first line.
    logged_at: AtomicU64,
    suppressed: AtomicU64,
}

impl Degraded {
    /// Creates an observer for the rules of `policy`.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        let rows = policy.rules().iter().map(|rule| Row::new(&rule.name)).collect();
        Self {
            rows: ArcSwap::from_pointee(rows),
            others: Default::default(),
            lines: Default::default(),
        }
    }

    /// Returns the counts since this observer was created, in the order of the policy's rules.
    /// Counts of zero are omitted.
    #[must_use]
    pub fn snapshot(&self) -> Vec<DegradedCount> {
        let known = self.rows.load();
        let known = known.iter().map(|row| (Some(&row.rule), &row.counts));
        let rows = known.chain([(None, &self.others)]);
        let counts = rows.flat_map(|(rule, counts)| {
            counts.iter().enumerate().map(move |(cause, count)| DegradedCount {
                rule: rule.cloned(),
                source: source(cause),
                decisions: count.load(Ordering::Relaxed),
            })
        });
        counts.filter(|count| count.decisions > 0).collect()
    }

    #[cold]
    fn count(&self, decision: &Decision, cause: usize) {
        let rows = self.rows.load();
        for name in &decision.rules {
            let row = rows.iter().find(|row| row.rule == *name);
            let counts = row.map_or(&self.others, |row| &row.counts);
            counts[cause].fetch_add(1, Ordering::Relaxed);
        }
        if decision.rules.is_empty() {
            self.others[cause].fetch_add(1, Ordering::Relaxed);
        }
        let Some(suppressed) = self.lines[cause].is_due(decision.evaluation.now) else { return };
        // Without a rule, the line has no field `rule`.
        let rule = decision.rules.first().map(|name| &**name);
        match decision.source {
            DecisionSource::Fallback(error) => tracing::warn!(
                rule, %error, suppressed, "the store did not answer: the fallback decided"
            ),
            DecisionSource::Failure(error) => tracing::warn!(
                rule, %error, suppressed, "the store did not answer: on_failure decided"
            ),
            DecisionSource::Overflow => tracing::warn!(
                rule,
                suppressed,
                "the store in memory is full: subjects without an entry share overflow counters, \
                 and may be refused early; raise the bounds of store.memory"
            ),
            DecisionSource::Store | DecisionSource::DenyCache => {}
        }
    }
}

impl Observer for Degraded {
    fn on_decision(&self, decision: &Decision) {
        if let Some(cause) = cause(decision.source) {
            self.count(decision, cause);
        }
    }

    fn on_policy_replaced(&self, policy: &Policy) {
        let old = self.rows.load();
        let row = |name: &Arc<str>| match old.iter().find(|row| row.rule == *name) {
            Some(row) => Arc::clone(row),
            None => Row::new(name),
        };
        let rows: Vec<_> = policy.rules().iter().map(|rule| row(&rule.name)).collect();
        let is_gone = |row: &&Arc<Row>| rows.iter().all(|new| new.rule != row.rule);
        for row in old.iter().filter(is_gone) {
            for (others, count) in self.others.iter().zip(&row.counts) {
                others.fetch_add(count.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        self.rows.store(Arc::new(rows));
    }
}

impl Row {
    fn new(rule: &Arc<str>) -> Arc<Self> {
        Arc::new(Self { rule: Arc::clone(rule), counts: Default::default() })
    }
}

impl Line {
    /// Returns the number of decisions since the last log line if the next log line is due at
    /// `now`. Returns `None` if the last log line is too recent.
    pub(super) fn is_due(&self, now: Timestamp) -> Option<u64> {
        let now = now.as_millis();
        let logged_at = self.logged_at.load(Ordering::Relaxed);
        // The comparison uses the absolute difference. With a signed difference, a clock that is
        // set back would suppress the log until the clock has caught up.
        let is_late = logged_at == 0 || now.abs_diff(logged_at) >= LOG_INTERVAL.get();
        let order = Ordering::Relaxed;
        if is_late && self.logged_at.compare_exchange(logged_at, now.max(1), order, order).is_ok() {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// The store errors that this version distinguishes.
const ERRORS: [StoreError; 4] =
    [StoreError::Full, StoreError::Unavailable, StoreError::TimedOut, StoreError::Corrupt];

/// The number of causes: the deny cache, an overflow counter, and for each error the fallback and
/// `on_failure`.
const CAUSES: usize = 2 + 2 * ERRORS.len();

/// Returns the index of the cause `source` in the counters, or `None` if the store decided.
fn cause(source: DecisionSource) -> Option<usize> {
    match source {
        DecisionSource::Store => None,
        DecisionSource::DenyCache => Some(0),
        DecisionSource::Overflow => Some(1),
        DecisionSource::Fallback(error) => Some(2 + index(error)),
        DecisionSource::Failure(error) => Some(2 + ERRORS.len() + index(error)),
    }
}

fn source(cause: usize) -> DecisionSource {
    match cause.checked_sub(2) {
        None if cause == 0 => DecisionSource::DenyCache,
        None => DecisionSource::Overflow,
        Some(index) if index < ERRORS.len() => DecisionSource::Fallback(ERRORS[index]),
        Some(index) => DecisionSource::Failure(ERRORS[index - ERRORS.len()]),
    }
}

/// Returns the index of `error` in [`ERRORS`]. An error that this version does not know counts as a
/// corrupt answer.
fn index(error: StoreError) -> usize {
    ERRORS.iter().position(|known| *known == error).unwrap_or(ERRORS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_own_place() {
        for place in 0..CAUSES {
            assert_eq!(cause(source(place)), Some(place));
        }
        assert_eq!(cause(DecisionSource::Store), None);
    }

    #[test]
    fn a_line_stands_for_what_was_not_reported() {
        let line = Line::default();
        let at = |millis: u64| line.is_due(Timestamp::from_millis(1_700_000_000_000 + millis));
        assert_eq!(at(0), Some(0));
        for millis in [0, 1, 500, 999] {
            assert_eq!(at(millis), None);
        }
        assert_eq!(at(1_000), Some(4));
        assert_eq!(at(1_000), None);
        assert_eq!(at(60_000), Some(1));
        assert_eq!(at(10_000), Some(0), "the clock was set back");
    }
}
