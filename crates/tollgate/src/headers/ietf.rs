//! The fields `ratelimit-policy` and `ratelimit`, which list every visible limit by its name. They
//! are structured fields (RFC 9651) after draft-ietf-httpapi-ratelimit-headers.

use tollgate_core::Evaluation;

use super::list::{USUAL, push_name, separate};
use super::{Fields, push_number, seconds_to_reset};

pub(super) fn write(evaluation: &Evaluation, fields: &mut impl Fields) {
    let visible = || evaluation.statuses.iter().filter(|status| status.is_visible());
    if visible().next().is_none() {
        return;
    }
    fields.add_policies("ratelimit-policy", visible().map(|status| &status.limit));
    fields.add_text("ratelimit", |statuses| {
        statuses.reserve(USUAL * evaluation.statuses.len());
        let start = statuses.len();
        for status in visible() {
            separate(statuses, start);
            push_name(statuses, status.limit.name());
            statuses.push_str(";r=");
            push_number(statuses, status.remaining);
            statuses.push_str(";t=");
            push_number(statuses, seconds_to_reset(status, evaluation.now));
        }
    });
}
