//! The five fields of GitHub's REST API, from the standing of the tightest limit.

use tollgate_core::Verdict;

use super::FieldValue::{Number, Text};
use super::Fields;

pub(super) fn write(verdict: &Verdict, fields: &mut impl Fields) {
    let Some(standing) = verdict.tightest() else { return };
    fields.set("x-ratelimit-limit", Number(standing.limit.capacity()));
    fields.set("x-ratelimit-remaining", Number(standing.remaining));
    fields.set("x-ratelimit-used", Number(standing.used));
    fields.set("x-ratelimit-reset", Number(standing.resets_at.as_secs_ceil()));
    fields.set("x-ratelimit-resource", Text(standing.limit.resource().to_owned()));
}
