//! Items of the lists in `ratelimit-policy` and `ratelimit`: structured fields (RFC 9651).

use tollgate_core::{Algorithm, Limit, Unit};

use super::push_number;

/// The largest integer of a structured field: an integer has at most 15 digits. Quotas can be
/// larger.
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// The bytes to reserve for a limit's item in `ratelimit-policy` or `ratelimit`. Most items need no
/// more.
pub(super) const USUAL: usize = 48;

/// Appends a comma and a space to `list` if the list already has an item. The list begins at the
/// index `start`.
pub(super) fn separate(list: &mut String, start: usize) {
    if list.len() > start {
        list.push_str(", ");
    }
}

/// Appends the name of a limit in quotes. A name needs no escapes.
pub(super) fn push_name(list: &mut String, name: &str) {
    list.push('"');
    list.push_str(name);
    list.push('"');
}

/// Appends the digits of `number`, or of [`MAX_INTEGER`] if `number` is larger.
pub(super) fn push_integer(list: &mut String, number: u64) {
    push_number(list, number.min(MAX_INTEGER));
}

/// Appends the item of a limit: its name, the parameters `q`, `qu` and `w` as the policy defines
/// them, and `burst` if the limit is a token bucket. The window `w` is in whole seconds, and is
/// omitted if the limit has no window.
pub(super) fn push_policy(policies: &mut String, limit: &Limit) {
    policies.reserve(USUAL);
    push_name(policies, limit.name());
    let (quota, window) = limit.quota_per_window();
    policies.push_str(";q=");
    push_integer(policies, quota);
    policies.push_str(match limit.unit() {
        Unit::Requests => "",
        Unit::ContentBytes => ";qu=\"content-bytes\"",
        Unit::ConcurrentRequests => ";qu=\"concurrent-requests\"",
    });
    let window = window.get();
    let has_window = !matches!(limit.algorithm(), Algorithm::Concurrency(_));
    if has_window && window.is_multiple_of(1000) {
        policies.push_str(";w=");
        push_integer(policies, window / 1000);
    }
    if let Some(burst) = limit.burst() {
        policies.push_str(";burst=");
        push_integer(policies, burst);
    }
}
