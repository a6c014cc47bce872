//! Checks the names of header fields, cookies and query parameters.

use crate::decode::{Spanned, Text, quoted};
use crate::report::Report;
use crate::span::Span;

/// Returns the name of a header in lower case. Returns `None` after reporting that it is not a
/// valid name. `what` is the kind of the name in messages.
pub(super) fn field_name(
    given: &Spanned<Text>,
    what: &str,
    report: &mut Report<'_>,
) -> Option<Box<str>> {
    is_token(&given.value.0, given.at, what, report)?;
    Some(given.value.0.to_ascii_lowercase().into())
}

/// The maximum length of a query parameter's name in bytes.
const MAX_PARAMETER: usize = 128;

/// Returns `Some` if `text` can be the name of a query parameter. Returns `None` after reporting
/// that it cannot.
pub(super) fn is_parameter(text: &str, at: Span, report: &mut Report<'_>) -> Option<()> {
    let is_fine = (1..=MAX_PARAMETER).contains(&text.len()) && !text.chars().any(char::is_control);
    if has_star(text, at, "query parameter", report) {
        return None;
    }
    if is_fine {
        return Some(());
    }
    let message = format_args!("{} is not a valid name of a query parameter", quoted(text));
    let hint = format_args!("expected the decoded name, of up to {MAX_PARAMETER} bytes");
    report.error(at, message, hint);
    None
}

/// Returns `Some` if `text` is a token as RFC 9110 defines it, which names of headers and cookies
/// must be. Returns `None` after reporting that it is not. `what` is the kind of the name in
/// messages.
pub(super) fn is_token(text: &str, at: Span, what: &str, report: &mut Report<'_>) -> Option<()> {
    if has_star(text, at, what, report) {
        return None;
    }
    if is_token_text(text) {
        return Some(());
    }
    let message = format_args!("{} is not a valid name of a {what}", quoted(text));
    report.error(at, message, "expected letters, digits and `-`");
    None
}

/// Returns whether a name contains `*`, and reports it if it does. Such a name would be compared
/// literally, and would match no request.
fn has_star(text: &str, at: Span, what: &str, report: &mut Report<'_>) -> bool {
    let has_star = text.contains('*');
    if has_star {
        let message = format_args!("{} is not a valid name of a {what}", quoted(text));
        report.error(at, message, "names are no patterns: list each of them");
    }
    has_star
}

/// Returns whether `text` is a token as RFC 9110 defines it.
pub(super) fn is_token_text(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    text.bytes().all(fits)
}
