//! `x-ratelimit-*` as Envoy and Limitador send them, after draft 03 of the IETF document: the
//! tightest limit, then every visible policy with its window.

use std::fmt::Write;

use http::header::{HeaderMap, HeaderName};
use tollgate_core::Verdict;

use super::{insert_number, seconds_to_reset, text};

pub(super) fn write(verdict: &Verdict, headers: &mut HeaderMap) {
    let Some(tightest) = verdict.tightest() else { return };
    let mut limits = tightest.limit.capacity().to_string();
    for standing in verdict.standings.iter().filter(|standing| standing.is_visible()) {
        let (limit, window) = (&standing.limit, standing.limit.window().as_secs_ceil());
        // Writing to a string does not fail.
        let _ = write!(limits, ", {};w={window};name=\"{}\"", limit.capacity(), limit.name());
    }
    if let Some(limits) = text(&limits) {
        headers.insert(HeaderName::from_static("x-ratelimit-limit"), limits);
    }
    insert_number(headers, "x-ratelimit-remaining", tightest.remaining);
    insert_number(headers, "x-ratelimit-reset", seconds_to_reset(tightest, verdict.now));
}
