//! The `x-ratelimit-*` fields as Envoy and Limitador send them, after draft 03 of
//! draft-ietf-httpapi-ratelimit-headers. The fields report the tightest limit. `x-ratelimit-limit`
//! also lists every visible limit with its quota and its window.

use tollgate_core::Evaluation;

use super::FieldValue::{Number, Text};
use super::{Fields, push_number, seconds_to_reset};

pub(super) fn write(evaluation: &Evaluation, fields: &mut impl Fields) {
    let Some(tightest) = evaluation.tightest() else { return };
    let mut limits = tightest.limit.capacity().to_string();
    for status in evaluation.statuses.iter().filter(|status| status.is_visible()) {
        let limit = &status.limit;
        limits.push_str(", ");
        let (quota, window) = limit.quota_per_window();
        push_number(&mut limits, quota);
        limits.push_str(";w=");
        push_number(&mut limits, window.as_secs_ceil());
        if let Some(burst) = limit.burst() {
            limits.push_str(";burst=");
            push_number(&mut limits, burst);
        }
        limits.push_str(";name=\"");
        limits.push_str(limit.name());
        limits.push('"');
    }
    fields.set("x-ratelimit-limit", Text(limits));
    fields.set("x-ratelimit-remaining", Number(tightest.remaining));
    fields.set("x-ratelimit-reset", Number(seconds_to_reset(tightest, evaluation.now)));
}
