//! The five fields of GitHub's REST API, from the standing of the tightest limit.

use http::header::{HeaderMap, HeaderName};
use tollgate_core::Verdict;

use super::{insert_number, text};

pub(super) fn write(verdict: &Verdict, headers: &mut HeaderMap) {
    let Some(standing) = verdict.tightest() else { return };
    insert_number(headers, "x-ratelimit-limit", standing.limit.capacity());
    insert_number(headers, "x-ratelimit-remaining", standing.remaining);
    insert_number(headers, "x-ratelimit-used", standing.used);
    insert_number(headers, "x-ratelimit-reset", standing.resets_at.as_secs_ceil());
    if let Some(resource) = text(standing.limit.resource()) {
        headers.insert(HeaderName::from_static("x-ratelimit-resource"), resource);
    }
}
