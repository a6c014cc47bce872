//! Writes an evaluation as response header fields. Each header profile has a file.
//!
//! The profiles only format the statuses. Times are in whole seconds, rounded up.

mod draft_03;
mod field_value;
mod fields;
mod github;
mod ietf;
mod lines;
mod list;
mod three_fields;

use tollgate_core::policy::HeaderProfile;
use tollgate_core::{Evaluation, LimitStatus, Timestamp};

pub use field_value::FieldValue;
pub use fields::Fields;
pub use lines::HeaderLines;

/// Adds the fields of the header `profiles` for `evaluation` to `fields`, such as a `HeaderMap`.
///
/// If the upstream already set a field with one value, the new value replaces the upstream's value.
/// A list (`ratelimit`, `ratelimit-policy`) keeps the upstream's items, because the upstream's own
/// limits are equally valid. The fields of a refusal never report enough remaining units for the
/// refused request. Only a refusal has `retry-after`, which is at least 1. Like GitHub, the profile
/// `github` omits `retry-after` if `x-ratelimit-reset` reports the same time.
pub fn write(profiles: &[HeaderProfile], evaluation: &Evaluation, fields: &mut impl Fields) {
    for profile in profiles {
        match profile {
            HeaderProfile::GitHub => {
                if let Some((status, with_usage)) = github::reported(evaluation) {
                    fields.set_github(status, with_usage);
                }
            }
            HeaderProfile::Ietf if ietf::visible(evaluation).next().is_none() => {}
            HeaderProfile::Ietf => fields.add_ietf(evaluation),
            HeaderProfile::Draft03 => draft_03::write(evaluation, fields),
            HeaderProfile::ThreeFields => three_fields::write(evaluation, fields),
        }
    }
    // Only a refusal has a time to wait.
    if evaluation.is_admitted()
        || profiles == [HeaderProfile::GitHub] && github::reports_the_wait(evaluation)
    {
        return;
    }
    if let Some(seconds) = retry_after_seconds(evaluation) {
        fields.set("retry-after", FieldValue::Number(seconds));
    }
}

/// Returns the whole seconds to wait after a refusal, at least 1. Returns `None` if the request was
/// admitted, or if no wait helps.
#[must_use]
pub fn retry_after_seconds(evaluation: &Evaluation) -> Option<u64> {
    evaluation.retry_after().map(|wait| wait.as_secs_ceil().max(1))
}

/// Returns the whole seconds from `now`, the time of the decision, until the reset in `status`,
/// rounded up.
fn seconds_to_reset(status: &LimitStatus, now: Timestamp) -> u64 {
    status.resets_at.since(now).as_secs_ceil()
}

/// Appends the digits of `number` to `text`. The standard formatting would take longer than the
/// rest of the field.
fn push_number(text: &mut String, number: u64) {
    text.push_str(itoa::Buffer::new().format(number));
}
