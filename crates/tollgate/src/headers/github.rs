//! The five fields of GitHub's REST API, from the status of the tightest limit.

use tollgate_core::Evaluation;

use super::FieldValue::Number;
use super::Fields;

pub(super) fn write(evaluation: &Evaluation, fields: &mut impl Fields) {
    let explaining = evaluation.tightest();
    let Some(status) = explaining.or_else(|| evaluation.tightest_visible()) else { return };
    fields.set("x-ratelimit-limit", Number(status.limit.capacity()));
    // If only hidden limits refused, the remaining units of a visible limit would contradict the
    // refusal.
    if explaining.is_some() {
        fields.set("x-ratelimit-remaining", Number(status.remaining));
        fields.set("x-ratelimit-used", Number(status.used));
    }
    fields.set("x-ratelimit-reset", Number(status.resets_at.as_secs_ceil()));
    fields.set_text("x-ratelimit-resource", |text| text.push_str(status.limit.resource()));
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
