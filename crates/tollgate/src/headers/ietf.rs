//! `ratelimit-policy` and `ratelimit`: structured fields (RFC 9651) after
//! draft-ietf-httpapi-ratelimit-headers, every visible limit by its name.

use tollgate_core::{Algorithm, Evaluation, Limit, Unit};

use super::fields::separate;
use super::{Fields, push_number, seconds_to_reset};

/// The usual size of one limit in either field, in bytes: most names need no more.
const USUAL: usize = 48;

pub(super) fn write(evaluation: &Evaluation, fields: &mut impl Fields) {
    let visible = || evaluation.statuses.iter().filter(|status| status.is_visible());
    if visible().next().is_none() {
        return;
    }
    fields.add_policies("ratelimit-policy", visible().map(|status| &status.limit));
    fields.add_text("ratelimit", |statuses| {
        statuses.reserve(USUAL * evaluation.statuses.len());
        let start = statuses.len();
        for status in visible() {
            separate(statuses, start);
            push_name(statuses, status.limit.name());
            statuses.push_str(";r=");
            push_number(statuses, status.remaining);
            statuses.push_str(";t=");
            push_number(statuses, seconds_to_reset(status, evaluation.now));
        }
    });
}

/// Appends a name, which needs no escapes.
fn push_name(list: &mut String, name: &str) {
    list.push('"');
    list.push_str(name);
    list.push('"');
}

/// Appends the name of a limit, its `q`, `qu` and `w` as the policy defines them, and `burst` of a
/// token bucket. The window is in whole seconds, and is omitted if the limit has none.
pub(super) fn push_policy(policies: &mut String, limit: &Limit) {
    policies.reserve(USUAL);
    push_name(policies, limit.name());
    let (quota, window) = limit.quota_per_window();
    policies.push_str(";q=");
    push_number(policies, quota);
    policies.push_str(match limit.unit() {
        Unit::Requests => "",
        Unit::ContentBytes => ";qu=\"content-bytes\"",
        Unit::ConcurrentRequests => ";qu=\"concurrent-requests\"",
    });
    let window = window.get();
    let has_window = !matches!(limit.algorithm(), Algorithm::Concurrency(_));
    if has_window && window.is_multiple_of(1000) {
        policies.push_str(";w=");
        push_number(policies, window / 1000);
    }
    if let Some(burst) = limit.burst() {
        policies.push_str(";burst=");
        push_number(policies, burst);
    }
}
