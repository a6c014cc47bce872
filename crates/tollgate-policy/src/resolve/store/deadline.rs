//! How long a decision may take, whatever the store's servers do.

use std::time::Duration;

use crate::decode::{self, Field};
use crate::report::Report;

/// Where nothing is written.
const DEFAULT: Duration = Duration::from_millis(15);

/// The longest.
const MAX: Duration = Duration::from_secs(10);

/// The deadline that is written, or the default; `None` if it is wrong, which is reported.
pub(super) fn deadline(raw: &Field<decode::Duration>, report: &mut Report<'_>) -> Option<Duration> {
    let given = match raw {
        Field::Absent => return Some(DEFAULT),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let deadline = Duration::from_millis(given.value.0.get());
    if deadline > MAX {
        let message = format_args!("a deadline of {}", given.value.0);
        report.error(given.at, message, "expected 1ms to 10s: a request waits for it");
        return None;
    }
    Some(deadline)
}
