//! The five fields of GitHub's REST API, from the status of the tightest limit.

use tollgate_core::Evaluation;

use super::FieldValue::{Number, Text};
use super::Fields;

pub(super) fn write(evaluation: &Evaluation, fields: &mut impl Fields) {
    let Some(status) = evaluation.tightest() else { return };
    fields.set("x-ratelimit-limit", Number(status.limit.capacity()));
    fields.set("x-ratelimit-remaining", Number(status.remaining));
    fields.set("x-ratelimit-used", Number(status.used));
    fields.set("x-ratelimit-reset", Number(status.resets_at.as_secs_ceil()));
    fields.set("x-ratelimit-resource", Text(status.limit.resource().to_owned()));
}
