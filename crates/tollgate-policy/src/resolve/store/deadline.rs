//! Converts the key `deadline` to the deadline of decisions: the longest time that a decision may
//! take, however slow the servers of the store are.

use std::time::Duration;

use crate::decode::{self, Field};
use crate::report::Report;

/// The deadline of decisions if the file sets none.
const DEFAULT: Duration = Duration::from_millis(15);

/// The longest deadline that a file can set.
const MAX: Duration = Duration::from_secs(10);

/// The shortest deadline of decisions in memcached.
pub(super) const MEMCACHED_MIN: Duration = Duration::from_millis(1);

/// Returns the configured deadline or the default. Returns `None` after reporting a mistake, such
/// as a deadline below `min`.
pub(super) fn deadline(
    raw: &Field<decode::Duration>,
    min: Duration,
    report: &mut Report<'_>,
) -> Option<Duration> {
    let given = match raw {
        Field::Absent => return Some(DEFAULT),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let deadline = Duration::from_millis(given.value.0.get());
    if !(min..=MAX).contains(&deadline) {
        let message = format_args!("invalid deadline {}", given.value.0);
        let reason = if deadline > MAX {
            "requests wait up to this long"
        } else {
            "within a shorter time no decision reaches the servers, and each node decides alone"
        };
        let hint = format_args!("expected {}ms to 10s: {reason}", min.as_millis());
        report.error(given.at, message, hint);
        return None;
    }
    Some(deadline)
}
