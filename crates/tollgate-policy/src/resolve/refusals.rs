//! Converts the key `refuse` to the response to refused requests: its status, header fields, bodies
//! and documentation.

use std::ops::RangeInclusive;

use tollgate_core::Limit;
use tollgate_core::refusal::{
    MAX_TEMPLATE, MAX_VARIABLES, RefusalSettings, Template, TemplateError, Variable,
};

use super::field_name::is_token;
use crate::decode::{Field, Integer, Named, Spanned, Text, quoted};
use crate::raw::{self, RefuseAnswer};
use crate::report::Report;
use crate::suggest::suggest;

/// The statuses that a policy can set for the response to a refused request. The status must be
/// that of an error, because the service did not answer the request.
const STATUSES: RangeInclusive<u16> = 400..=599;
/// The largest number of header fields that a policy can add to the response to a refused request.
const MAX_HEADERS: usize = 16;
/// The maximum length in bytes of the value of a header field. The same maximum applies to the
/// address of the documentation.
const MAX_VALUE: usize = 1_024;

/// Header fields that a policy cannot set. They describe the connection or the body, or Tollgate
/// writes them.
const RESERVED: [&str; 18] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "host",
    "keep-alive",
    "link",
    "retry-after",
    "set-cookie",
    "te",
    "tollgate-decision",
    "tollgate-receipt",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
];

/// The prefixes of header fields that report limits. A policy cannot set a header field with such a
/// prefix.
const OF_LIMITS: [&str; 2] = ["ratelimit", "x-ratelimit"];

/// Returns the limit with the response to requests that it refuses, if the file sets one.
pub(super) fn refused(limit: Limit, raw: &raw::Limit, report: &mut Report<'_>) -> Limit {
    match refusal(&raw.refuse, report) {
        Some(refusal) => limit.with_refusal(refusal),
        None => limit,
    }
}

/// Returns the settings of the response to refused requests. Returns `None` if the file has none,
/// and also after reporting a mistake.
pub(super) fn refusal(
    raw: &Field<RefuseAnswer>,
    report: &mut Report<'_>,
) -> Option<RefusalSettings> {
    let raw = raw.value()?;
    let body = raw.body.value();
    let mut read = |field: Option<&Field<Text>>, is_json: bool| {
        let given = field?.given()?;
        let template = template(given, report)?;
        if is_json {
            check_json(given, &template, report);
        }
        Some(template)
    };
    let json = read(body.map(|body| &body.json), true);
    let html = read(body.map(|body| &body.html), false);
    let text = read(body.map(|body| &body.text), false);
    Some(RefusalSettings {
        status: raw.status.given().and_then(|given| status(given, report)),
        headers: headers(raw, report),
        documentation: raw.documentation.given().and_then(|given| address(given, report)),
        json,
        html,
        text,
    })
}

/// Returns the status of the response to refused requests, or `None` after reporting a mistake.
fn status(given: &Spanned<Integer>, report: &mut Report<'_>) -> Option<u16> {
    let status = u16::try_from(given.value.0).ok().filter(|status| STATUSES.contains(status));
    if status.is_none() {
        let message = format_args!("{} is not a valid status here", given.value.0);
        let hint = format_args!("expected {} to {}", STATUSES.start(), STATUSES.end());
        report.error(given.at, message, hint);
    }
    status
}

fn headers(raw: &RefuseAnswer, report: &mut Report<'_>) -> Vec<(Box<str>, Box<str>)> {
    let Some(given) = raw.headers.given() else { return Vec::new() };
    let named = &given.value.0;
    if named.len() > MAX_HEADERS {
        let hint = format_args!("at most {MAX_HEADERS}");
        report.error(given.at, "too many header fields in a refusal", hint);
    }
    named.iter().filter_map(|named| header(named, report)).collect()
}

fn header(named: &Named<Text>, report: &mut Report<'_>) -> Option<(Box<str>, Box<str>)> {
    let Named { name: Spanned { value: name, at, .. }, value } = named;
    is_token(name, *at, "header", report)?;
    let name = name.to_ascii_lowercase();
    if RESERVED.contains(&&*name) || OF_LIMITS.iter().any(|first| name.starts_with(first)) {
        let message = format_args!("{} cannot be set in a refusal", quoted(&name));
        report.error(*at, message, "the response has it already, or the client needs it unchanged");
        return None;
    }
    let value = &*value.as_ref()?.0;
    let is_visible = |byte: u8| (b' '..=b'~').contains(&byte);
    if value.len() > MAX_VALUE || !value.bytes().all(is_visible) {
        let message = format_args!("the value of {} is not one of a header field", quoted(&name));
        let hint = format_args!("expected up to {MAX_VALUE} visible ASCII characters");
        report.error(*at, message, hint);
        return None;
    }
    Some((name.into(), value.into()))
}

fn address(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let address = &*given.value.0;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>\"".contains(&byte);
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    if is_web && address.len() <= MAX_VALUE && address.bytes().all(is_plain) {
        return Some(address.into());
    }
    let message = format_args!("{} is not the address of a page", quoted(address));
    report.error(given.at, message, "expected one such as https://example.com/docs/limits");
    None
}

fn template(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<Template> {
    let error = match Template::parse(&given.value.0) {
        Ok(template) => return Some(template),
        Err(error) => error,
    };
    let known = || Variable::ALL.iter().map(|(name, _)| *name);
    match error {
        TemplateError::Unknown(name) => {
            let message = format_args!("unknown variable {}", quoted(&name));
            match suggest(&name, known()) {
                Some(meant) => {
                    report.error(given.at, message, format_args!("did you mean {meant:?}?"));
                }
                None => {
                    let all: Vec<_> = known().collect();
                    report.error(given.at, message, format_args!("expected {}", all.join(", ")));
                }
            }
        }
        TemplateError::Open => {
            let hint = "write a variable as {{limit}}";
            report.error(given.at, "a `{{` has no `}}`", hint);
        }
        TemplateError::TooLong => {
            let hint = format_args!("at most {MAX_TEMPLATE} bytes");
            report.error(given.at, "the template is too long", hint);
        }
        TemplateError::TooManyVariables => {
            let hint = format_args!("at most {MAX_VARIABLES}");
            report.error(given.at, "the template has too many variables", hint);
        }
        _ => report.plain_error(given.at, "this is not a template"),
    }
    None
}

/// Reports a template that is not valid JSON. A template must be valid for all values of its
/// variables.
fn check_json(given: &Spanned<Text>, template: &Template, report: &mut Report<'_>) {
    let example = template.render(|variable, text| {
        text.push_str(match variable {
            Variable::Limit | Variable::Rule | Variable::Documentation => "name",
            Variable::Quota
            | Variable::Remaining
            | Variable::Reset
            | Variable::RetryAfter
            | Variable::Status => "1",
        });
    });
    if let Err(error) = serde_json::from_str::<serde_json::Value>(&example) {
        let message = format_args!("the template is not JSON: {error}");
        let hint = "texts such as {{limit}} need quotation marks, numbers such as {{quota}} do not";
        report.error(given.at, message, hint);
    }
}
