//! How long a rule's requests wait for a place in flight.

use tollgate_core::policy::queue::{DEFAULT_QUEUE_LENGTH, LONGEST_QUEUE, LONGEST_QUEUE_WAIT};
use tollgate_core::policy::{Mode, Queue, Use};
use tollgate_core::{Algorithm, Limit, Millis, Refusals};

use super::super::limits::Counted;
use crate::read::{Field, Given, quoted};
use crate::report::Report;
use crate::written;

/// How the requests of a rule wait that uses these limits; `None` if they do not, or if something
/// is wrong, which is reported.
pub(super) fn queue(
    rule: &written::Rule,
    uses: &[Use],
    counted: &[Option<Counted>],
    mode: Mode,
    report: &mut Report<'_>,
) -> Option<Queue> {
    let given = rule.queue.given()?;
    let limits = uses.iter().filter_map(|used| Some(&*counted[used.limit].as_ref()?.limit.limit));
    check_purpose(given, limits, mode, report);
    let wait = given.value.wait.given()?;
    if wait.value.0 == Millis::ZERO || wait.value.0 > LONGEST_QUEUE_WAIT {
        let longest = LONGEST_QUEUE_WAIT.get() / 1_000;
        let message = "this is no time for a request to wait";
        report.mistake(wait.at, message, format_args!("more than nothing, and at most {longest}s"));
        return None;
    }
    let length = match &given.value.length {
        Field::Absent => DEFAULT_QUEUE_LENGTH,
        Field::Wrong => return None,
        Field::Given(length) => {
            let in_range = |length: &usize| (1..=LONGEST_QUEUE).contains(length);
            let Some(length) = usize::try_from(length.value.0).ok().filter(in_range) else {
                let hint = format_args!("from 1 to {LONGEST_QUEUE} requests can wait");
                report.mistake(length.at, "this is no length of a queue", hint);
                return None;
            };
            length
        }
    };
    Some(Queue { wait: wait.value.0, length })
}

/// Reports a queue in which nobody would wait, or in which waiting would count.
fn check_purpose<'l>(
    given: &Given<written::Queue>,
    mut limits: impl Iterator<Item = &'l Limit> + Clone,
    mode: Mode,
    report: &mut Report<'_>,
) {
    let is_concurrency = |limit: &Limit| matches!(limit.algorithm(), Algorithm::Concurrency(_));
    if mode == Mode::Shadow {
        report.plain_mistake(given.key, "a rule that is only counted lets nobody wait");
    } else if !limits.clone().any(is_concurrency) {
        let hint = "requests wait for places in flight: name a limit with `algorithm: concurrency`";
        report.mistake(given.key, "there is nothing to wait for", hint);
    }
    if let Some(limit) = limits.find(|limit| limit.refusals() == Refusals::Counted) {
        let message = format_args!(
            "{} counts refusals, and whoever waits may be refused many times",
            quoted(limit.name())
        );
        report.mistake(given.key, message, "use them in rules of their own");
    }
}
