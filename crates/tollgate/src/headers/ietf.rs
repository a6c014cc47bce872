//! `ratelimit-policy` and `ratelimit`: structured fields (RFC 9651) after
//! draft-ietf-httpapi-ratelimit-headers, every visible limit by its name.

use tollgate_core::{Algorithm, Evaluation, Limit, Unit};

use super::{Fields, push_number, seconds_to_reset};

/// The usual size of one limit in either field, in bytes: most names need no more.
const USUAL: usize = 48;

pub(super) fn write(evaluation: &Evaluation, fields: &mut impl Fields) {
    let visible = || evaluation.statuses.iter().filter(|status| status.is_visible());
    if visible().next().is_none() {
        return;
    }
    let usual = USUAL * evaluation.statuses.len();
    fields.add_text("ratelimit-policy", |policies| {
        policies.reserve(usual);
        let start = policies.len();
        for status in visible() {
            begin_item(policies, start, status.limit.name());
            push_parameters(policies, &status.limit);
        }
    });
    fields.add_text("ratelimit", |statuses| {
        statuses.reserve(usual);
        let start = statuses.len();
        for status in visible() {
            begin_item(statuses, start, status.limit.name());
            statuses.push_str(";r=");
            push_number(statuses, status.remaining);
            statuses.push_str(";t=");
            push_number(statuses, seconds_to_reset(status, evaluation.now));
        }
    });
}

/// Appends an item to a list: its name, which needs no escapes.
fn begin_item(list: &mut String, start: usize, name: &str) {
    list.push_str(if list.len() == start { "\"" } else { ", \"" });
    list.push_str(name);
    list.push('"');
}

/// Appends `q`, `qu` and `w` of a limit, as the policy defines them, and `burst` of a token bucket.
/// The window is in whole seconds, and is omitted if the limit has none.
fn push_parameters(policies: &mut String, limit: &Limit) {
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
