//! Answers: profiles, statuses and the standing endpoint.

use tollgate_core::policy::answers::Refund;
use tollgate_core::policy::{Answers, HeaderProfile};

use crate::read::{Field, Given, OneOrMore, Text, Whole, quoted};
use crate::report::Report;
use crate::written;

/// What clients are told; `None` if something is wrong, which is reported.
pub(super) fn answers(
    written: Option<&written::Answers>,
    report: &mut Report<'_>,
) -> Option<Answers> {
    let mut answers = Answers::default();
    let Some(written) = written else { return Some(answers) };
    if let Some(OneOrMore(profiles)) = written.headers.value() {
        answers.headers = distinct(profiles, |profile| profile.0, "profile", report);
        // Both write x-ratelimit-limit, each in its own way.
        let clashing = [HeaderProfile::GitHub, HeaderProfile::Draft03];
        let is_clashing = |profile: &HeaderProfile| clashing.contains(profile);
        let last = profiles.iter().rfind(|profile| is_clashing(&profile.value.0));
        if let (true, Some(last)) = (clashing.iter().all(|p| answers.headers.contains(p)), last) {
            let message = "`github` and `draft-03` write the same fields in different ways";
            report.mistake(
                last.at,
                message,
                "send one of them; ietf and three-fields go with both",
            );
        }
    }
    if let Some(refund) = written.refund.value() {
        if let Some(OneOrMore(statuses)) = refund.status.value() {
            for status in statuses {
                check_status(status, 100, report);
            }
            let code = |status: &Whole| status.0 as u16;
            answers.refund_statuses = distinct(statuses, code, "status", report);
        }
        if refund.upstream_failure.value().is_some_and(|flag| flag.0) {
            answers.refund_upstream_failure = Refund::GiveBack;
        }
    }
    if let Some(status) = written.refuse.value().and_then(|refuse| refuse.status.given()) {
        answers.refuse_status = check_status(status, 400, report)?;
    }
    if let Field::Given(path) = &written.standing {
        answers.standing_path = Some(standing_path(path, report)?);
    }
    if let Some(on_failure) = written.on_failure.value() {
        answers.on_failure = on_failure.0;
    }
    Some(answers)
}

/// The values in their order; reports those that are there twice.
fn distinct<W, T: PartialEq>(
    given: &[Given<W>],
    value: impl Fn(&W) -> T,
    what: &str,
    report: &mut Report<'_>,
) -> Vec<T> {
    let mut values = Vec::with_capacity(given.len());
    for one in given {
        let value = value(&one.value);
        if values.contains(&value) {
            report.plain_mistake(one.at, format_args!("this {what} is there twice"));
        } else {
            values.push(value);
        }
    }
    values
}

fn check_status(given: &Given<Whole>, least: u16, report: &mut Report<'_>) -> Option<u16> {
    let status = u16::try_from(given.value.0).ok().filter(|status| (least..=599).contains(status));
    if status.is_none() {
        let message = format_args!("{} is no status that fits here", given.value.0);
        report.mistake(given.at, message, format_args!("expected {least} to 599"));
    }
    status
}

fn standing_path(given: &Given<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let path = &*given.value.0;
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && !b"*{}?#".contains(&byte));
    if path.starts_with('/') && is_plain {
        return Some(path.into());
    }
    report.mistake(
        given.at,
        format_args!("{} is no plain path", quoted(path)),
        "expected one path such as /rate_limit, without a pattern or a query",
    );
    None
}
