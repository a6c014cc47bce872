//! What clients are told: a verdict as header fields, one file a profile.
//!
//! Nothing is computed here but the form: whole seconds, rounded up.

mod draft_03;
mod github;
mod ietf;
mod three_fields;

use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use tollgate_core::policy::HeaderProfile;
use tollgate_core::{Standing, Timestamp, Verdict};

/// Adds what `profiles` say of `verdict` to `headers`.
///
/// Fields of one value replace what an upstream sent; lists (`ratelimit`, `ratelimit-policy`) keep
/// it, since an upstream's own limits are as true as ours. A refusal shows no standing that would
/// contradict it. `retry-after` is on refusals only, at least 1.
pub fn write(profiles: &[HeaderProfile], verdict: &Verdict, headers: &mut HeaderMap) {
    for profile in profiles {
        match profile {
            HeaderProfile::GitHub => github::write(verdict, headers),
            HeaderProfile::Ietf => ietf::write(verdict, headers),
            HeaderProfile::Draft03 => draft_03::write(verdict, headers),
            HeaderProfile::ThreeFields => three_fields::write(verdict, headers),
        }
    }
    if let Some(seconds) = retry_after_seconds(verdict) {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// Whole seconds to wait after a refusal, at least 1; `None` if it was admitted, or if no wait helps.
#[must_use]
pub fn retry_after_seconds(verdict: &Verdict) -> Option<u64> {
    verdict.retry_after().map(|wait| wait.as_secs_ceil().max(1))
}

/// Whole seconds from the decision to the reset.
fn seconds_to_reset(standing: &Standing, now: Timestamp) -> u64 {
    standing.resets_at.since(now).as_secs_ceil()
}

fn insert_number(headers: &mut HeaderMap, name: &'static str, value: u64) {
    headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
}

/// Sets or adds a value made of names of limits and numbers, which always is a header value.
fn text(value: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(value).ok()
}
