//! The body of a refusal: problem details (RFC 9457), by the types of the IETF draft.

use std::fmt::Write;

use tollgate_core::policy::HeaderProfile;
use tollgate_core::{Evaluation, LimitStatus, Millis};

use crate::shed::{ShedCause, ShedDecision};

/// The media type of the body.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// The same media type for clients of GitHub's API: of problem details, octokit reads only those
/// that say they are text, and the message by which it knows secondary limits stands there.
pub const GITHUB_CONTENT_TYPE: &str = "application/problem+json; charset=utf-8";

const TYPES: &str = "https://iana.org/assignments/http-problem-types";

/// The media type and the body of a refusal by limits, for clients that read `profiles`.
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

/// As [`quota_exceeded`], with the `message` by which clients of GitHub's API tell limits that they
/// can see from secondary ones, which are hidden.
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

/// The body of a refusal by limits: which refused, and when to come again.
///
/// Names of limits are plain letters, digits, `_`, `-` and `.`, so the text is JSON as it stands.
#[must_use]
pub fn quota_exceeded(evaluation: &Evaluation, status: u16) -> String {
    let mut detail = String::from("Refused by");
    let mut names = String::new();
    for (index, status) in evaluation.refusals().enumerate() {
        let limit = &status.limit;
        let separator = if index == 0 { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(detail, "{separator} limit {}", limit.name());
        if status.is_visible() {
            let _ = write!(detail, " ({} per {})", limit.capacity(), limit.window());
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

/// The body of a refusal because the limits cannot be asked and the policy denies then.
#[must_use]
pub fn store_unavailable() -> String {
    format!(
        "{{\"type\":\"{TYPES}#temporary-reduced-capacity\",\"title\":\"Limits cannot be checked\",\
         \"status\":503,\"detail\":\"The service cannot check its limits now; try again later.\",\
         \"violated-policies\":[]}}"
    )
}

/// The body of a refusal because there is too much to do: what there was too much of, and for whom.
#[must_use]
pub fn shed(shed: &ShedDecision) -> String {
    let (priority, cause) = (shed.priority.name(), shed.cause.name());
    let what = match shed.cause {
        ShedCause::Fleet => "All places for such requests are taken",
        ShedCause::InFlight => "Too many requests are in flight",
        ShedCause::QueueDelay => "Requests wait too long",
        ShedCause::LoopDelay => "The node has too much to do",
    };
    let seconds = shed.retry_after.as_secs_ceil().max(1);
    format!(
        "{{\"type\":\"{TYPES}#temporary-reduced-capacity\",\"title\":\"Request shed\",\
         \"status\":503,\"detail\":\"{what} (priority {priority}); try again in {seconds} s.\",\
         \"violated-policies\":[],\"shed-by\":\"{cause}\",\"priority\":\"{priority}\"}}"
    )
}
