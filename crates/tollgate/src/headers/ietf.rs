//! The fields `ratelimit-policy` and `ratelimit`, which list every visible limit by its name. They
//! are structured fields (RFC 9651) after draft-ietf-httpapi-ratelimit-headers.

use tollgate_core::{Evaluation, LimitStatus};

use super::list::{USUAL, push_integer, push_name, push_policy, separate};
use super::seconds_to_reset;

pub(super) const POLICY: &str = "ratelimit-policy";
pub(super) const STATUS: &str = "ratelimit";

/// The text before the value of [`POLICY`] in lines of HTTP/1.1.
pub(super) const BEFORE_POLICY: &str = "ratelimit-policy: ";
/// The text between the value of [`POLICY`] and the value of [`STATUS`] in lines of HTTP/1.1.
pub(super) const AFTER_POLICY: &str = "\r\nratelimit: ";

/// The text between the name of a limit and its remaining units in [`STATUS`].
pub(super) const REMAINING: &str = ";r=";
/// The text between the remaining units of a limit and the seconds to its reset in [`STATUS`].
pub(super) const RESET: &str = ";t=";

/// Returns the statuses of the visible limits.
pub(super) fn visible(evaluation: &Evaluation) -> impl Iterator<Item = &LimitStatus> {
    evaluation.statuses.iter().filter(|status| status.is_visible())
}

/// Passes the name and the value of each field to `add`: first [`POLICY`], then [`STATUS`].
pub(super) fn each(evaluation: &Evaluation, mut add: impl FnMut(&'static str, String)) {
    let mut policies = String::new();
    for status in visible(evaluation) {
        separate(&mut policies, 0);
        push_policy(&mut policies, &status.limit);
    }
    add(POLICY, policies);
    let mut statuses = String::with_capacity(USUAL * evaluation.statuses.len());
    for status in visible(evaluation) {
        separate(&mut statuses, 0);
        push_name(&mut statuses, status.limit.name());
        statuses.push_str(REMAINING);
        push_integer(&mut statuses, status.remaining);
        statuses.push_str(RESET);
        push_integer(&mut statuses, seconds_to_reset(status, evaluation.now));
    }
    add(STATUS, statuses);
}
