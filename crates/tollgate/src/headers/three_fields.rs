//! `ratelimit-limit`, `-remaining` and `-reset` as drafts 04 to 06 of the IETF document had them.

use tollgate_core::Verdict;

use super::FieldValue::Number;
use super::{Fields, seconds_to_reset};

pub(super) fn write(verdict: &Verdict, fields: &mut impl Fields) {
    let Some(standing) = verdict.tightest() else { return };
    fields.set("ratelimit-limit", Number(standing.limit.capacity()));
    fields.set("ratelimit-remaining", Number(standing.remaining));
    fields.set("ratelimit-reset", Number(seconds_to_reset(standing, verdict.now)));
}
