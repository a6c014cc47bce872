//! Converts the key `subjects` to the dimensions of the policy.

use tollgate_core::policy::{Attribute, Dimension, SubjectSource};

use super::chain;
use super::expression;
use super::field_name::{field_name, is_parameter, is_token};
use super::jwt::TokenSource;
use super::names::NameTable;
use super::pointer::pointer;
use super::quotas::can_be_chosen;
use crate::decode::{Field, Integer, Spanned, Text, quoted};
use crate::raw::{StorageForm, Subject};
use crate::report::Report;
use crate::span::Span;

/// Headers that contain credentials. A subject from such a header is hashed by default.
const CREDENTIALS: [&str; 14] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "apikey",
    "x-auth-token",
    "x-access-token",
    "x-session-token",
    "x-csrf-token",
    "private-token",
    "x-goog-api-key",
    "x-amz-security-token",
    "ocp-apim-subscription-key",
];

const IPV4_PREFIX: u8 = 32;
const IPV6_PREFIX: u8 = 64;

/// Returns a dimension for each subject, in file order. An element is `None` if the subject has a
/// mistake, which is reported.
pub(super) fn dimensions(
    subjects: &mut NameTable<'_, Subject>,
    tokens: &TokenSource,
    report: &mut Report<'_>,
) -> Vec<Option<Dimension>> {
    let dimension = |named: &crate::decode::Named<Subject>| {
        let subject = named.value.as_ref()?;
        let source = source(&named.name, subject, tokens, report);
        misplaced(subject, source.as_ref(), report);
        Some(Dimension { name: named.name.value.as_str().into(), source: source? })
    };
    let mut dimensions: Vec<_> = subjects.all().iter().map(dimension).collect();
    // Subjects with `first_of` are resolved last, because they refer to other subjects.
    for (index, named) in subjects.all().iter().enumerate() {
        let chain = named.value.as_ref().and_then(|subject| subject.first_of.given());
        if let (Some(chain), true) = (chain, dimensions[index].is_some()) {
            let found = chain::dimensions(chain, subjects, &dimensions, report);
            let name = named.name.value.as_str().into();
            dimensions[index] = found.map(|dimensions| Dimension {
                name,
                source: SubjectSource::FirstOf { dimensions },
            });
        }
    }
    dimensions
}

fn source(
    name: &Spanned<String>,
    subject: &Subject,
    tokens: &TokenSource,
    report: &mut Report<'_>,
) -> Option<SubjectSource> {
    one_source(name, subject, report)?;
    if let Some(header) = subject.header.given() {
        return by_header(header, subject, report);
    }
    if let Some(header) = subject.credential.given() {
        return Some(SubjectSource::Credential { header: field_name(header, "header", report)? });
    }
    if let Some(cookie) = subject.cookie.given() {
        is_token(&cookie.value.0, cookie.at, "cookie", report)?;
        return Some(SubjectSource::Cookie { cookie: cookie.value.0.as_str().into() });
    }
    if let Some(parameter) = subject.query.given() {
        return by_parameter(parameter, subject, report);
    }
    if let Some(claim) = subject.claim.given() {
        return tokens.claim(claim, report);
    }
    if let Some(expression) = subject.expression.given() {
        return by_expression(expression, subject, report);
    }
    if let Some(number) = subject.path_segment.given() {
        return segment(number, report);
    }
    if subject.first_of.given().is_some() {
        return Some(SubjectSource::FirstOf { dimensions: Vec::new() });
    }
    if subject.client_address.given().is_some() {
        return Some(SubjectSource::ClientAddress {
            ipv4_prefix: prefix(&subject.ipv4_prefix, 32, IPV4_PREFIX, report)?,
            ipv6_prefix: prefix(&subject.ipv6_prefix, 128, IPV6_PREFIX, report)?,
        });
    }
    if let Some(parameter) = subject.path_parameter.value() {
        return Some(SubjectSource::PathParameter { parameter: parameter.0.as_str().into() });
    }
    if let Some(json) = subject.json.given() {
        let unread = subject.unread.value().map(|unread| unread.0).unwrap_or_default();
        return Some(SubjectSource::Json { pointer: pointer(json, report)?, unread });
    }
    if let Some(name) = subject.tls_client.value() {
        return Some(SubjectSource::TlsClient { name: name.0 });
    }
    if let Some(value) = subject.constant.value() {
        return Some(SubjectSource::Constant { value: value.0.as_str().into() });
    }
    let plain = [
        (subject.host.value(), SubjectSource::Host),
        (subject.route.value(), SubjectSource::Route),
        (subject.method.value(), SubjectSource::Method),
    ];
    plain.into_iter().find_map(|(present, source)| present.map(|_| source))
}

/// Returns `Some` if a subject has exactly one source. Returns `None` after reporting that it has
/// none or several.
fn one_source(name: &Spanned<String>, subject: &Subject, report: &mut Report<'_>) -> Option<()> {
    fn source_key<T>(key: &'static str, field: &Field<T>) -> Option<(&'static str, Option<Span>)> {
        (!field.is_absent()).then(|| (key, field.given().map(|given| given.key)))
    }
    let sources = [
        source_key("header", &subject.header),
        source_key("credential", &subject.credential),
        source_key("cookie", &subject.cookie),
        source_key("query", &subject.query),
        source_key("expression", &subject.expression),
        source_key("claim", &subject.claim),
        source_key("client_address", &subject.client_address),
        source_key("path_parameter", &subject.path_parameter),
        source_key("path_segment", &subject.path_segment),
        source_key("json", &subject.json),
        source_key("tls_client", &subject.tls_client),
        source_key("host", &subject.host),
        source_key("route", &subject.route),
        source_key("method", &subject.method),
        source_key("constant", &subject.constant),
        source_key("first_of", &subject.first_of),
    ];
    let mut raw = sources.into_iter().flatten();
    let Some((first, _)) = raw.next() else {
        let message = format_args!("the subject {} has no source", quoted(&name.value));
        let hint = "one of header, credential, cookie, query, expression, claim, client_address, path_parameter, \
                    path_segment, json, tls_client, host, route, method, constant or first_of";
        report.error(name.at, message, hint);
        return None;
    };
    let Some((second, at)) = raw.next() else { return Some(()) };
    let message =
        format_args!("a subject has exactly one source, this one has `{first}` and `{second}`");
    report.error(
        at.unwrap_or(name.at),
        message,
        "define two subjects: the `per` of a limit can list both",
    );
    None
}

/// Reports options of a subject that belong to another source than `source`.
fn misplaced(subject: &Subject, source: Option<&SubjectSource>, report: &mut Report<'_>) {
    if subject.client_address.is_absent() {
        let prefixes =
            [("ipv4_prefix", &subject.ipv4_prefix), ("ipv6_prefix", &subject.ipv6_prefix)];
        for (key, field) in prefixes {
            if let Some(given) = field.given() {
                report.plain_error(given.key, format_args!("`{key}` belongs to `client_address`"));
            }
        }
    }
    if let (true, Some(unread)) = (subject.json.is_absent(), subject.unread.given()) {
        report.plain_error(unread.key, "`unread` belongs to `json`");
    }
    if let Some(trusted) = subject.trusted.given()
        && source.is_some_and(|source| !can_be_chosen(source))
    {
        let hint = "it belongs to header, query, json, path_parameter, path_segment, host, expressions \
                    and unverified claims, in clear text";
        report.error(trusted.key, "`trusted` has no meaning for this subject", hint);
    }
    let has_value = !(subject.header.is_absent()
        && subject.query.is_absent()
        && subject.expression.is_absent());
    if let (false, Some(keep)) = (has_value, subject.keep.given()) {
        let hint = "credentials and cookies are hashed, all other values are stored in clear text";
        report.error(keep.key, "`keep` belongs to `header`, `query` and `expression`", hint);
    }
}

fn by_header(
    header: &Spanned<Text>,
    subject: &Subject,
    report: &mut Report<'_>,
) -> Option<SubjectSource> {
    let name = field_name(header, "header", report)?;
    let is_credential = CREDENTIALS.contains(&&*name);
    let kept = match subject.keep.given() {
        Some(keep) if keep.value.0 == StorageForm::Clear && is_credential => {
            let message = format_args!("the credential in {name} is stored in clear text");
            report.warning(
                keep.at,
                message,
                "anyone with access to the store can use it: keep it hashed",
            );
            StorageForm::Clear
        }
        Some(keep) => keep.value.0,
        None if is_credential => StorageForm::Hashed,
        None => StorageForm::Clear,
    };
    Some(match kept {
        StorageForm::Hashed => SubjectSource::Credential { header: name },
        StorageForm::Clear => SubjectSource::Header { header: name },
    })
}

/// Texts that often occur in the names of query parameters which contain credentials.
const SECRET_PARTS: [&str; 7] = ["key", "token", "secret", "password", "auth", "session", "sig"];

fn by_parameter(
    parameter: &Spanned<Text>,
    subject: &Subject,
    report: &mut Report<'_>,
) -> Option<SubjectSource> {
    let name = &*parameter.value.0;
    is_parameter(name, parameter.at, report)?;
    let is_clear = subject.keep.given().filter(|keep| keep.value.0 == StorageForm::Clear);
    let lower = name.to_ascii_lowercase();
    if let Some(keep) = is_clear
        && SECRET_PARTS.iter().any(|part| lower.contains(part))
    {
        let message = format_args!("the credential in {name} is stored in clear text");
        let hint = "anyone with access to the store can use it: keep it hashed";
        report.warning(keep.at, message, hint);
    }
    Some(SubjectSource::Query { parameter: name.into(), is_secret: is_clear.is_none() })
}

/// Returns the source of a subject whose value is made by the expression `given`. The value is
/// hashed before use if it might contain a credential. Returns `None` after reporting a mistake.
fn by_expression(
    given: &Spanned<Text>,
    subject: &Subject,
    report: &mut Report<'_>,
) -> Option<SubjectSource> {
    let text = expression::text(given, report)?;
    let mut is_secret = false;
    text.attributes(&mut |attribute| {
        is_secret |= match attribute {
            Attribute::Header(name) => CREDENTIALS.contains(&&**name),
            Attribute::Cookie(_) | Attribute::Parameter(_) | Attribute::Query => true,
            _ => false,
        }
    });
    if let Some(keep) = subject.keep.given() {
        if keep.value.0 == StorageForm::Clear && is_secret {
            let hint = "anyone with access to the store can read it: keep it hashed";
            report.warning(keep.at, "the expression may contain credentials", hint);
        }
        is_secret = keep.value.0 == StorageForm::Hashed;
    }
    Some(SubjectSource::Expression { text, written: given.value.0.as_str().into(), is_secret })
}

fn segment(number: &Spanned<Integer>, report: &mut Report<'_>) -> Option<SubjectSource> {
    const MAX_SEGMENT: usize = 32;
    let given = usize::try_from(number.value.0).ok();
    let found = given.filter(|number| (1..=MAX_SEGMENT).contains(number));
    if found.is_none() {
        let message = format_args!("a path segment with the number {}", number.value.0);
        report.error(number.at, message, format_args!("expected 1 to {MAX_SEGMENT}"));
    }
    found.map(|number| SubjectSource::PathSegment { number })
}

fn prefix(field: &Field<Integer>, most: u8, default: u8, report: &mut Report<'_>) -> Option<u8> {
    let Some(given) = field.given() else {
        return field.is_absent().then_some(default);
    };
    let bits = u8::try_from(given.value.0).ok().filter(|bits| (1..=most).contains(bits));
    if bits.is_none() {
        let message = format_args!("a prefix of {} bits", given.value.0);
        report.error(given.at, message, format_args!("expected 1 to {most}"));
    }
    bits
}
