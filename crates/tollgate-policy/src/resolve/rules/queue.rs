//! Converts the key `queue` of a rule to the queue in which requests wait for a permit.

use tollgate_core::policy::queue::{DEFAULT_QUEUE_LENGTH, MAX_QUEUE_LENGTH, MAX_QUEUE_WAIT};
use tollgate_core::policy::{LimitRef, Queue, RuleMode};
use tollgate_core::{Algorithm, Limit, Millis};

use super::super::limits::ResolvedLimit;
use crate::decode::{Field, Spanned};
use crate::raw;
use crate::report::Report;

/// Returns the queue of a rule. Returns `None` if the rule has no queue, and also after reporting a
/// mistake.
pub(super) fn queue(
    rule: &raw::Rule,
    uses: &[LimitRef],
    counted: &[Option<ResolvedLimit>],
    mode: RuleMode,
    report: &mut Report<'_>,
) -> Option<Queue> {
    let given = rule.queue.given()?;
    let limits = uses.iter().filter_map(|used| Some(&*counted[used.limit].as_ref()?.limit.limit));
    check_purpose(given, limits, mode, report);
    let wait = given.value.wait.given()?;
    if wait.value.0 == Millis::ZERO || wait.value.0 > MAX_QUEUE_WAIT {
        let longest = MAX_QUEUE_WAIT.get() / 1_000;
        let message = "invalid waiting time";
        report.error(wait.at, message, format_args!("expected more than 0 and at most {longest}s"));
        return None;
    }
    let length = match &given.value.length {
        Field::Absent => DEFAULT_QUEUE_LENGTH,
        Field::Invalid => return None,
        Field::Value(length) => {
            let in_range = |length: &usize| (1..=MAX_QUEUE_LENGTH).contains(length);
            let Some(length) = usize::try_from(length.value.0).ok().filter(in_range) else {
                let hint = format_args!("expected 1 to {MAX_QUEUE_LENGTH}");
                report.error(length.at, "invalid length of a queue", hint);
                return None;
            };
            length
        }
    };
    Some(Queue { wait: wait.value.0, length })
}

/// Reports a queue that has no purpose, because no request would ever wait in it.
fn check_purpose<'l>(
    given: &Spanned<raw::Queue>,
    mut limits: impl Iterator<Item = &'l Limit>,
    mode: RuleMode,
    report: &mut Report<'_>,
) {
    let is_concurrency = |limit: &Limit| matches!(limit.algorithm(), Algorithm::Concurrency(_));
    if mode == RuleMode::Shadow {
        report.plain_error(
            given.key,
            "a shadow rule cannot have a queue: it never refuses a request",
        );
    } else if !limits.any(is_concurrency) {
        let hint = "requests wait for permits: add a limit with `algorithm: concurrency`";
        report.error(given.key, "the rule has no limit that requests can wait for", hint);
    }
}
