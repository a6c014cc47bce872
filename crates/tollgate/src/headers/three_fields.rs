//! The fields `ratelimit-limit`, `ratelimit-remaining` and `ratelimit-reset`, as drafts 04 to 06 of
//! draft-ietf-httpapi-ratelimit-headers defined them.

use tollgate_core::Evaluation;

use super::FieldValue::Number;
use super::{Fields, seconds_to_reset};

pub(super) fn write(evaluation: &Evaluation, fields: &mut impl Fields) {
    let Some(status) = evaluation.tightest() else { return };
    fields.set("ratelimit-limit", Number(status.limit.capacity()));
    fields.set("ratelimit-remaining", Number(status.remaining));
    fields.set("ratelimit-reset", Number(seconds_to_reset(status, evaluation.now)));
}
