//! Converts the key `match` of a rule to the conditions of the rule.

use std::collections::BTreeSet;

use tollgate_core::policy::{MAX_CONDITION_DEPTH, PathPattern, RequestMatch, WrittenCondition};

use super::super::expression;
use super::super::field_name::is_token;
use super::super::names::NameTable;
use super::Defined;
use super::values::{ValueKind, wanted};
use crate::decode::{Field, List, OneOrMore, Spanned, Text, quoted};
use crate::raw::{Conditions, PolicyFile, Subject};
use crate::report::Report;

/// The largest number of sets of conditions in `not` and `any` of one rule, at all depths together.
const MAX_NESTED: usize = 64;

/// Returns the conditions of a rule, or `None` after reporting a mistake.
pub(super) fn matching(
    raw: &Conditions,
    defined: &mut Defined<'_, '_>,
    report: &mut Report<'_>,
) -> Option<RequestMatch> {
    Nesting { depth: 0, left: MAX_NESTED }.set(raw, defined, report)
}

/// Converts the sets of conditions in `any` and `not`, and bounds their depth and their number.
struct Nesting {
    depth: usize,
    left: usize,
}

impl Nesting {
    fn set(
        &mut self,
        raw: &Conditions,
        defined: &mut Defined<'_, '_>,
        report: &mut Report<'_>,
    ) -> Option<RequestMatch> {
        let methods = each(&raw.method, |given| method(given, report));
        let is_nested = self.depth > 0;
        let paths = each(&raw.path, |given| match is_nested {
            true => nested_path(given, report),
            false => path(given, report),
        });
        let hosts = each(&raw.host, |given| host(given, report));
        let networks = match &raw.network {
            Field::Absent => Some(Vec::new()),
            Field::Invalid => None,
            Field::Value(given) => defined.networks.of_condition(&given.value, report),
        };
        let headers = wanted(&raw.header, ValueKind::Header, report);
        let query = wanted(&raw.query, ValueKind::Query, report);
        let cookies = wanted(&raw.cookie, ValueKind::Cookie, report);
        let subjects = &mut *defined.subjects;
        let has = each(&raw.has, |given| subjects.index(&given.value.0, given.at, report));
        let lacks = each(&raw.lacks, |given| subjects.index(&given.value.0, given.at, report));
        let when = when(&raw.when, subjects, report);
        let any = self.nested("any", &raw.any, |List(sets)| sets, defined, report);
        let not = self.nested("not", &raw.not, |OneOrMore(sets)| sets, defined, report);
        let matching = RequestMatch {
            methods: methods?,
            paths: paths?,
            hosts: hosts?,
            networks: networks?,
            headers: headers?,
            query: query?,
            cookies: cookies?,
            has: has?,
            lacks: lacks?,
            when: when?,
            any: any?,
            not: not?,
        };
        contradiction(raw, &matching, report);
        Some(matching)
    }

    /// Returns the sets of conditions in `any` or `not`, or `None` after reporting a mistake.
    fn nested<F>(
        &mut self,
        key: &str,
        field: &Field<F>,
        sets: impl Fn(&F) -> &Vec<Spanned<Conditions>>,
        defined: &mut Defined<'_, '_>,
        report: &mut Report<'_>,
    ) -> Option<Vec<RequestMatch>> {
        let given = match field {
            Field::Absent => return Some(Vec::new()),
            Field::Invalid => return None,
            Field::Value(given) => given,
        };
        let sets = sets(&given.value);
        if self.depth == MAX_CONDITION_DEPTH {
            let message = format_args!("conditions nested more than {MAX_CONDITION_DEPTH} deep");
            report.error(given.key, message, "split the rule into several");
            return None;
        }
        if sets.is_empty() {
            let hint = format_args!("expected conditions, such as {key}: [{{ method: GET }}]");
            report.error(given.at, format_args!("`{key}` is empty"), hint);
            return None;
        }
        let Some(left) = self.left.checked_sub(sets.len()) else {
            let message = format_args!("more than {MAX_NESTED} sets of conditions in one rule");
            report.error(given.key, message, "split the rule into several");
            return None;
        };
        self.left = left;
        self.depth += 1;
        let set = |set: &Spanned<Conditions>| {
            let resolved = self.set(&set.value, defined, report)?;
            if resolved == RequestMatch::default() {
                let hint = "every request meets them: add a condition";
                report.error(set.at, format_args!("conditions of `{key}` are empty"), hint);
                return None;
            }
            Some(resolved)
        };
        let resolved: Vec<_> = sets.iter().map(set).collect();
        self.depth -= 1;
        resolved.into_iter().collect()
    }
}

/// Returns the compiled expression of `when`. Returns `Some(None)` if the rule has no `when`, and
/// `None` after reporting a mistake.
fn when(
    given: &Field<Text>,
    subjects: &mut NameTable<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<Option<Box<WrittenCondition>>> {
    let given = match given {
        Field::Absent => return Some(None),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let condition = expression::condition(given, subjects, report)?;
    Some(Some(Box::new(WrittenCondition { text: given.value.0.as_str().into(), condition })))
}

/// Returns the names of the parameters that path patterns of the file capture.
pub(super) fn parameters(file: &PolicyFile) -> BTreeSet<&str> {
    let rules = file.rules.value().map_or(&[][..], |List(rules)| rules);
    let conditions = rules.iter().filter_map(|rule| rule.value.r#match.value());
    let paths = conditions.filter_map(|conditions| conditions.path.value());
    let segments = paths.flat_map(|paths| &paths.0).flat_map(|path| path.value.0.split('/'));
    segments.filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect()
}

/// Returns the values of a key, each converted by `value`. The list is empty if the key is absent.
/// Returns `None` if one of the values has a mistake, which is reported.
fn each<W, T>(
    field: &Field<OneOrMore<W>>,
    mut value: impl FnMut(&Spanned<W>) -> Option<T>,
) -> Option<Vec<T>> {
    match field {
        Field::Absent => Some(Vec::new()),
        Field::Invalid => None,
        Field::Value(given) => {
            let values: Vec<Option<T>> = given.value.0.iter().map(&mut value).collect();
            values.into_iter().collect()
        }
    }
}

fn method(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let name = &given.value.0;
    if matches!(&**name, "*" | "ANY" | "any" | "ALL" | "all") {
        let message = format_args!("{} is not a method", quoted(name));
        report.error(given.at, message, "remove `method` to match all methods");
        return None;
    }
    is_token(name, given.at, "method", report)?;
    if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let message = format_args!("methods are upper case, this is {}", quoted(name));
        report.error(
            given.at,
            message,
            format_args!("did you mean {}?", quoted(&name.to_ascii_uppercase())),
        );
        return None;
    }
    Some(name.as_str().into())
}

fn path(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<PathPattern> {
    let text = &given.value.0;
    if text.contains(['?', '#']) {
        let message = format_args!("{} is not only a path", quoted(text));
        report.error(given.at, message, "a pattern matches the path without the query");
        return None;
    }
    match PathPattern::parse(text) {
        Ok(pattern) => {
            let Some(what) = foreign(text) else { return Some(pattern) };
            let message = format_args!("{} uses {what}, which paths do not support", quoted(text));
            let hint = "a segment is a text, `{id}` or `*`, and `**` at the end all that follow; \
                        write other characters in percent-encoding, such as %5B";
            report.error(given.at, message, hint);
            None
        }
        Err(error) => {
            report.error(given.at, format_args!("{} is not a path pattern", quoted(text)), error);
            None
        }
    }
}

/// Returns a part of a path pattern that has a meaning in other pattern languages, such as a
/// regular expression, if the pattern contains one. In a policy, such a part is literal text and
/// would match no request.
fn foreign(text: &str) -> Option<&'static str> {
    let mut segments = text.split('/');
    if segments.any(|segment| segment.len() > 1 && segment.starts_with(':')) {
        Some("`:name`")
    } else if text.contains(['<', '>']) {
        Some("`<name>`")
    } else if text.contains(['[', ']', '^', '\\']) || text.contains(".+") || text.ends_with('$') {
        Some("a regular expression")
    } else if text.contains('|') {
        Some("`|`")
    } else {
        None
    }
}

/// Returns a path pattern of a set in `any` or `not`. Such a pattern must not capture segments.
/// Returns `None` after reporting a mistake.
fn nested_path(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<PathPattern> {
    let pattern = path(given, report)?;
    if given.value.0.contains('{') {
        let message = format_args!("{} has a parameter", quoted(&given.value.0));
        report.error(given.at, message, "write `*`: only the rule's own `path` captures segments");
        return None;
    }
    Some(pattern)
}

/// Returns a host in its normal form, or `None` after reporting a mistake.
fn host(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let text = given.value.0.to_ascii_lowercase();
    let name = text.strip_prefix("*.").unwrap_or(&text);
    let is_bracketed = name.starts_with('[') && name.ends_with(']');
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let hint = if name.contains("://") || name.contains('/') {
        "expected a name without a scheme or a path"
    } else if is_bracketed && address.parse::<std::net::Ipv6Addr>().is_ok() {
        return Some(text.into());
    } else if name.contains(':') {
        "remove the port; write an IPv6 address in brackets"
    } else if name.is_empty() || name.contains('*') {
        "`*.` is only allowed at the start: *.example.com"
    } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        "expected letters, digits, `-` and `.`; other scripts in their xn-- form"
    } else {
        return Some(text.trim_end_matches('.').into());
    };
    report.error(given.at, format_args!("{} is not a host", quoted(&given.value.0)), hint);
    None
}

/// Reports a subject that occurs in both `has` and `lacks`.
fn contradiction(raw: &Conditions, matching: &RequestMatch, report: &mut Report<'_>) {
    let Some(lacks) = raw.lacks.value() else { return };
    for (index, given) in matching.lacks.iter().zip(&lacks.0) {
        if matching.has.contains(index) {
            let message =
                format_args!("no request can both have and lack {}", quoted(&given.value.0));
            report.plain_error(given.at, message);
        }
    }
}
