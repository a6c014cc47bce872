//! `ratelimit-policy` and `ratelimit`: structured fields (RFC 9651) after
//! draft-ietf-httpapi-ratelimit-headers, every visible limit by its name.

use tollgate_core::{Algorithm, Evaluation, Limit, Unit};

use super::FieldValue::Text;
use super::{Fields, push_number, seconds_to_reset};

/// The usual size of one limit in either field, in bytes: most names need no more.
const USUAL: usize = 48;

pub(super) fn write(evaluation: &Evaluation, fields: &mut impl Fields) {
    let visible = || evaluation.statuses.iter().filter(|status| status.is_visible());
    if visible().next().is_none() {
        return;
    }
    let usual = USUAL * evaluation.statuses.len();
    let (mut policies, mut statuses) = (String::with_capacity(usual), String::with_capacity(usual));
    for status in visible() {
        let name = status.limit.name();
        begin_item(&mut policies, name);
        push_parameters(&mut policies, &status.limit);
        begin_item(&mut statuses, name);
        statuses.push_str(";r=");
        push_number(&mut statuses, status.remaining);
        statuses.push_str(";t=");
        push_number(&mut statuses, seconds_to_reset(status, evaluation.now));
    }
    fields.add("ratelimit-policy", Text(policies));
    fields.add("ratelimit", Text(statuses));
}

/// Appends an item to a list: its name, which needs no escapes.
fn begin_item(list: &mut String, name: &str) {
    list.push_str(if list.is_empty() { "\"" } else { ", \"" });
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
