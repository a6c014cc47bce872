//! Converts the key `answers` to the settings of responses: header profiles, the statuses after
//! which charges are refunded, and the path at which clients read their status.

use std::sync::Arc;

use tollgate_core::policy::answers::RefundPolicy;
use tollgate_core::policy::{HeaderProfile, ResponseSettings};
use tollgate_core::refusal::RefusalSettings;

use super::{outcomes, refusals};
use crate::decode::{Field, OneOrMore, Spanned, Text, quoted};
use crate::raw;
use crate::report::Report;

/// Returns the response settings, or `None` after reporting a mistake.
pub(super) fn answers(
    raw: Option<&raw::Answers>,
    report: &mut Report<'_>,
) -> Option<ResponseSettings> {
    let mut answers = ResponseSettings::default();
    let Some(raw) = raw else { return Some(answers) };
    if let Some(OneOrMore(profiles)) = raw.headers.value() {
        answers.headers = distinct(profiles, |profile| profile.0, "profile", report);
        // Both profiles write `x-ratelimit-limit`, in different formats.
        let clashing = [HeaderProfile::GitHub, HeaderProfile::Draft03];
        let is_clashing = |profile: &HeaderProfile| clashing.contains(profile);
        let last = profiles.iter().rfind(|profile| is_clashing(&profile.value.0));
        if let (true, Some(last)) = (clashing.iter().all(|p| answers.headers.contains(p)), last) {
            let message =
                "`github` and `draft-03` write the same header fields in different formats";
            report.error(
                last.at,
                message,
                "use one of them; ietf and three-fields can be combined with both",
            );
        }
    }
    if let Some(refund) = raw.refund.value() {
        if let Some(statuses) = refund.status.value() {
            answers.refund_statuses = outcomes::set(statuses, report).iter().collect();
        }
        if refund.upstream_failure.value().is_some_and(|flag| flag.0) {
            answers.refund_upstream_failure = RefundPolicy::Refund;
        }
    }
    if let Some(refusal) = refusals::refusal(&raw.refuse, report) {
        if let Some(status) = refusal.status {
            answers.refuse_status = status;
        }
        let has_more = RefusalSettings { status: None, ..refusal.clone() } != Default::default();
        answers.refusal = has_more.then(|| Arc::new(refusal));
    }
    if let Field::Value(path) = &raw.status_path {
        answers.status_path = Some(status_path(path, report)?);
    }
    if let Some(on_failure) = raw.on_failure.value() {
        answers.on_failure = on_failure.0;
    }
    Some(answers)
}

/// Returns the values of `given` in the order of the file, each value once. Reports values that
/// occur twice. `what` is the name of such a value in messages.
fn distinct<W, T: PartialEq>(
    given: &[Spanned<W>],
    value: impl Fn(&W) -> T,
    what: &str,
    report: &mut Report<'_>,
) -> Vec<T> {
    let mut values = Vec::with_capacity(given.len());
    for one in given {
        let value = value(&one.value);
        if values.contains(&value) {
            report.plain_error(one.at, format_args!("duplicate {what}"));
        } else {
            values.push(value);
        }
    }
    values
}

fn status_path(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let path = &*given.value.0;
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && !b"*{}?#".contains(&byte));
    if path.starts_with('/') && is_plain {
        return Some(path.into());
    }
    report.error(
        given.at,
        format_args!("{} is not a plain path", quoted(path)),
        "expected one path such as /rate_limit, without a pattern or a query",
    );
    None
}
