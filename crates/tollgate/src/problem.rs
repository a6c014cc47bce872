//! The body of a refusal: problem details (RFC 9457), with the problem types of
//! draft-ietf-httpapi-ratelimit-headers.

use std::fmt::Write;

use http::StatusCode;
use tollgate_core::policy::{Ambiguity, HeaderProfile};
use tollgate_core::{Evaluation, LimitStatus, Millis};

use crate::shed::{ShedCause, ShedDecision};

/// The media type of a body with problem details.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// The media type for clients of GitHub's API. Octokit parses a body only if the body has this
/// media type, and recognizes secondary limits by the message in the body.
pub const GITHUB_CONTENT_TYPE: &str = "application/json; charset=utf-8";

const TYPES: &str = "https://iana.org/assignments/http-problem-types";

/// Returns the media type and the body of a refusal by limits, for a response with the status code
/// `status` to clients that read the header profiles `profiles`.
#[must_use]
pub fn refusal(
    profiles: &[HeaderProfile],
    evaluation: &Evaluation,
    status: u16,
) -> (&'static str, String) {
    if profiles.contains(&HeaderProfile::GitHub) {
        (GITHUB_CONTENT_TYPE, quota_exceeded_at_github(evaluation, status))
    } else {
        (CONTENT_TYPE, quota_exceeded(evaluation, status))
    }
}

/// Returns the body of [`quota_exceeded`] with the `message` by which clients of GitHub's API
/// distinguish visible limits from secondary limits, which are hidden.
fn quota_exceeded_at_github(evaluation: &Evaluation, status: u16) -> String {
    let message = if evaluation.refusals().any(LimitStatus::is_visible) {
        "API rate limit exceeded."
    } else {
        "You have exceeded a secondary rate limit."
    };
    let mut body = quota_exceeded(evaluation, status);
    body.pop();
    body + &format!(",\"message\":\"{message}\"}}")
}

/// Returns the body of a refusal by limits: the limits that refused, and when to retry. `status` is
/// the status code of the response.
///
/// Names of limits consist of letters, digits, `_`, `-` and `.`, so the text is valid JSON without
/// escapes.
#[must_use]
pub fn quota_exceeded(evaluation: &Evaluation, status: u16) -> String {
    let mut detail = String::from("Refused by");
    let mut names = String::new();
    for (index, status) in evaluation.refusals().enumerate() {
        let limit = &status.limit;
        let separator = if index == 0 { "" } else { "," };
        // Writing to a string never fails.
        let _ = write!(detail, "{separator} limit {}", limit.name());
        if status.is_visible() {
            let (quota, window) = limit.quota_per_window();
            let _ = write!(detail, " ({quota} per {window}");
            if let Some(burst) = limit.burst() {
                let _ = write!(detail, ", burst {burst}");
            }
            detail.push(')');
        }
        let _ = write!(names, "{separator}\"{}\"", limit.name());
    }
    match evaluation.retry_after().map(Millis::as_secs_ceil) {
        Some(seconds) => {
            let _ = write!(detail, "; try again in {} s.", seconds.max(1));
        }
        None => detail.push_str("; the request costs more than the limit can ever hold."),
    }
    format!(
        "{{\"type\":\"{TYPES}#quota-exceeded\",\"title\":\"Quota exceeded\",\"status\":{status},\
         \"detail\":\"{detail}\",\"violated-policies\":[{names}]}}"
    )
}

/// Returns the body of a refusal under `on_failure: deny`, while the store does not answer.
#[must_use]
pub fn store_unavailable() -> String {
    format!(
        "{{\"type\":\"{TYPES}#temporary-reduced-capacity\",\"title\":\"Limits cannot be checked\",\
         \"status\":503,\"detail\":\"The service cannot check its limits now; try again later.\",\
         \"violated-policies\":[]}}"
    )
}

/// Returns the body of a refusal of a request that can be read in more than one way. The response
/// has the status code [`Ambiguity::status`].
#[must_use]
pub fn ambiguous(ambiguity: Ambiguity) -> String {
    let (status, detail) = (ambiguity.status(), ambiguity.detail());
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let title = reason.unwrap_or("Bad Request");
    format!(
        "{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{status},\"detail\":\"{detail}\"}}"
    )
}

/// Returns the body of a refusal by load shedding: the cause, and the priority of the request.
#[must_use]
pub fn shed(shed: &ShedDecision) -> String {
    let (priority, cause) = (shed.priority.name(), shed.cause.name());
    let what = match shed.cause {
        ShedCause::Fleet => "No capacity is left for requests of this priority",
        ShedCause::InFlight => "Too many requests are in flight",
        ShedCause::QueueDelay => "Requests wait too long",
        ShedCause::LoopDelay => "The node is overloaded",
    };
    let seconds = shed.retry_after.as_secs_ceil().max(1);
    format!(
        "{{\"type\":\"{TYPES}#temporary-reduced-capacity\",\"title\":\"Request shed\",\
         \"status\":503,\"detail\":\"{what} (priority {priority}); try again in {seconds} s.\",\
         \"violated-policies\":[],\"shed-by\":\"{cause}\",\"priority\":\"{priority}\"}}"
    )
}
