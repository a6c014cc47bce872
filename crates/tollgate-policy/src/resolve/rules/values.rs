//! Converts the keys `header`, `query` and `cookie` of a rule to conditions.

use tollgate_core::policy::descriptors::Pattern;
use tollgate_core::policy::{ValueMatch, ValuePattern};

use super::super::field_name::is_token;
use crate::decode::{Field, OneOrMore, Spanned, quoted};
use crate::raw::{ValueForm, WantedValue, WantedValues};
use crate::report::Report;
use crate::span::Span;

/// The largest number of accepted values for one header, query parameter or cookie.
const MAX_VALUES: usize = 64;
/// The maximum length in bytes of a value or pattern. The same maximum applies to the name of a
/// query parameter.
const MAX_BYTES: usize = 256;

/// The part of a request in which a condition looks for a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Header,
    Query,
    Cookie,
}

impl ValueKind {
    const fn what(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Query => "query parameter",
            Self::Cookie => "cookie",
        }
    }
}

/// Returns the names that must be present in a request, with the values that each must have.
/// Returns `None` after reporting a mistake.
pub(super) fn wanted(
    field: &Field<OneOrMore<WantedValues>>,
    kind: ValueKind,
    report: &mut Report<'_>,
) -> Option<Vec<ValueMatch>> {
    if field.is_invalid() {
        return None;
    }
    let given = field.value().map_or(&[][..], |given| &given.0);
    let one = |(name, values): &(Spanned<String>, Option<OneOrMore<WantedValue>>)| {
        let values = match values {
            Some(values) => patterns(name, values, report),
            None => Some(Vec::new()),
        };
        check_name(name, kind, report)?;
        let name = match kind {
            ValueKind::Header => name.value.to_ascii_lowercase(),
            ValueKind::Query | ValueKind::Cookie => name.value.clone(),
        };
        Some(ValueMatch { name: name.into(), values: values? })
    };
    let all: Vec<_> = given.iter().flat_map(|wanted| &wanted.value.0).map(one).collect();
    all.into_iter().collect()
}

fn check_name(name: &Spanned<String>, kind: ValueKind, report: &mut Report<'_>) -> Option<()> {
    if kind != ValueKind::Query {
        return is_token(&name.value, name.at, kind.what(), report);
    }
    super::super::field_name::is_parameter(&name.value, name.at, report)
}

fn patterns(
    name: &Spanned<String>,
    values: &OneOrMore<WantedValue>,
    report: &mut Report<'_>,
) -> Option<Vec<ValuePattern>> {
    if values.0.is_empty() || values.0.len() > MAX_VALUES {
        let message = format_args!("{} values of {}", values.0.len(), quoted(&name.value));
        report.error(name.at, message, format_args!("expected 1 to {MAX_VALUES} values"));
        return None;
    }
    let all: Vec<_> = values.0.iter().map(|value| pattern(value, report)).collect();
    all.into_iter().collect()
}

fn pattern(given: &Spanned<WantedValue>, report: &mut Report<'_>) -> Option<ValuePattern> {
    match &given.value {
        WantedValue::Plain(text) => {
            if let Some(what) = unsupported(&text.0) {
                let message =
                    format_args!("{} uses {what}, which values do not support", quoted(&text.0));
                let hint = "only `*` is special: any characters or none; a list has alternatives; \
                            { exact: … } compares every character";
                report.error(given.at, message, hint);
                return None;
            }
            with_stars(&text.0, given.at, report)
        }
        WantedValue::Form(ValueForm { exact, pattern }) => match (exact.given(), pattern.given()) {
            (Some(exact), None) => {
                let text = bounded(&exact.value.0, exact.at, report)?;
                Some(ValuePattern::Exact(text.into()))
            }
            (None, Some(pattern)) => with_stars(&pattern.value.0, pattern.at, report),
            _ => {
                let is_reported = exact.is_invalid() || pattern.is_invalid();
                if !is_reported {
                    let message = "expected either `exact` or `pattern`";
                    report.plain_error(given.at, message);
                }
                None
            }
        },
    }
}

/// Returns the text without surrounding white space. Returns `None` after reporting that the text
/// is too long.
fn bounded<'t>(text: &'t str, at: Span, report: &mut Report<'_>) -> Option<&'t str> {
    let text = text.trim();
    if text.len() > MAX_BYTES {
        let message = format_args!("a value of {} bytes", text.len());
        report.error(at, message, format_args!("at most {MAX_BYTES} bytes are compared"));
        return None;
    }
    Some(text)
}

fn with_stars(text: &str, at: Span, report: &mut Report<'_>) -> Option<ValuePattern> {
    let text = bounded(text, at, report)?;
    if !text.contains('*') {
        return Some(ValuePattern::Exact(text.into()));
    }
    let message = format_args!("{} is not a pattern", quoted(text));
    let parsed = Pattern::parse(text);
    parsed.map_err(|error| report.error(at, message, error)).ok().map(ValuePattern::Pattern)
}

/// Returns a part of a text that has a meaning in other pattern languages, such as a regular
/// expression, if the text contains one. In a policy, such a part is literal text and would match
/// no request.
fn unsupported(text: &str) -> Option<&'static str> {
    let has_both = |open, close| text.contains(open) && text.contains(close);
    let is_expression = text.starts_with(['^', '~'])
        || text.ends_with('$')
        || text.contains('\\')
        || [".*", ".+", "(?"].iter().any(|sign| text.contains(sign));
    if is_expression {
        Some("a regular expression")
    } else if has_both('[', ']') {
        Some("a class of characters")
    } else if has_both('{', '}') {
        Some("braces")
    } else if text.contains('|') {
        Some("`|`")
    } else if text.contains('?') {
        Some("`?`")
    } else {
        None
    }
}
