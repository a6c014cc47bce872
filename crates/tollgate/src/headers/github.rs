//! The five fields of GitHub's REST API, from the status of the tightest limit.

use tollgate_core::{Evaluation, LimitStatus};

use super::field_value::FieldValue::{self, Number, Text};

/// Defines two constants for each field: its name, and, for lines of HTTP/1.1, the text from the
/// end of the previous line to the value of the field.
macro_rules! names {
    ($($name:ident, $after_line:ident: $text:literal;)*) => {
        $(
            pub(super) const $name: &str = $text;
            pub(super) const $after_line: &str = concat!("\r\n", $text, ": ");
        )*
    };
}

pub(super) const LIMIT: &str = "x-ratelimit-limit";

names! {
    REMAINING, AFTER_LINE_REMAINING: "x-ratelimit-remaining";
    USED, AFTER_LINE_USED: "x-ratelimit-used";
    RESET, AFTER_LINE_RESET: "x-ratelimit-reset";
    RESOURCE, AFTER_LINE_RESOURCE: "x-ratelimit-resource";
}

/// Returns the status to report, and whether to report its used and remaining units too. Returns
/// `None` if there is no status to report.
pub(super) fn reported(evaluation: &Evaluation) -> Option<(&LimitStatus, bool)> {
    let explaining = evaluation.tightest();
    let status = explaining.or_else(|| evaluation.tightest_visible())?;
    // If only hidden limits refused, the remaining units of a visible limit would contradict the
    // refusal.
    Some((status, explaining.is_some()))
}

/// Passes the name and the value of each field to `set`. The fields of the remaining and the used
/// units are omitted unless `with_usage`.
pub(super) fn each(
    status: &LimitStatus,
    with_usage: bool,
    mut set: impl FnMut(&'static str, FieldValue),
) {
    set(LIMIT, Number(status.limit.capacity()));
    if with_usage {
        set(REMAINING, Number(status.remaining));
        set(USED, Number(status.used));
    }
    set(RESET, Number(status.resets_at.as_secs_ceil()));
    set(RESOURCE, Text(status.limit.resource().to_owned()));
}

/// Returns whether `x-ratelimit-reset` already reports the time to retry, in the form that clients
/// of GitHub's API recognize as a primary rate limit. This is so if no units remain and no hidden
/// limit refused.
///
/// GitHub sends `retry-after` only for secondary limits, and the client githubkit treats every
/// refusal with `retry-after` as a refusal by a secondary limit.
pub(super) fn reports_the_wait(evaluation: &Evaluation) -> bool {
    let Some(status) = evaluation.tightest() else { return false };
    let reset = status.resets_at.as_secs_ceil();
    let retry = evaluation.retry_after().map(|wait| evaluation.now.after(wait).as_secs_ceil());
    status.remaining == 0 && retry == Some(reset)
}
