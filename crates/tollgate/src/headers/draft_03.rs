//! `x-ratelimit-*` as Envoy and Limitador send them, after draft 03 of the IETF document: the
//! tightest limit, then every visible policy with its window.

use tollgate_core::Verdict;

use super::FieldValue::{Number, Text};
use super::{Fields, push_number, seconds_to_reset};

pub(super) fn write(verdict: &Verdict, fields: &mut impl Fields) {
    let Some(tightest) = verdict.tightest() else { return };
    let mut limits = tightest.limit.capacity().to_string();
    for standing in verdict.standings.iter().filter(|standing| standing.is_visible()) {
        let limit = &standing.limit;
        limits.push_str(", ");
        push_number(&mut limits, limit.capacity());
        limits.push_str(";w=");
        push_number(&mut limits, limit.window().as_secs_ceil());
        limits.push_str(";name=\"");
        limits.push_str(limit.name());
        limits.push('"');
    }
    fields.set("x-ratelimit-limit", Text(limits));
    fields.set("x-ratelimit-remaining", Number(tightest.remaining));
    fields.set("x-ratelimit-reset", Number(seconds_to_reset(tightest, verdict.now)));
}
