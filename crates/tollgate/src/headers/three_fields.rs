//! `ratelimit-limit`, `-remaining` and `-reset` as drafts 04 to 06 of the IETF document had them.

use http::header::HeaderMap;
use tollgate_core::Verdict;

use super::{insert_number, seconds_to_reset};

pub(super) fn write(verdict: &Verdict, headers: &mut HeaderMap) {
    let Some(standing) = verdict.tightest() else { return };
    insert_number(headers, "ratelimit-limit", standing.limit.capacity());
    insert_number(headers, "ratelimit-remaining", standing.remaining);
    insert_number(headers, "ratelimit-reset", seconds_to_reset(standing, verdict.now));
}
