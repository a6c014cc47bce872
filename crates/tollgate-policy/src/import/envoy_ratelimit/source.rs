//! The configuration file of `envoyproxy/ratelimit`, read as that server reads it.

use std::sync::Arc;

use tollgate_core::policy::descriptors::{Metadata, Pattern, TimeUnit};

use super::super::SourceFile;
use super::fields::Fields;
use crate::decode::{Spanned, quoted};
use crate::report::Report;
use crate::span::Span;
use crate::tree::{Node, document};

/// The content of one configuration file of `envoyproxy/ratelimit`.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: Arc<str>,
    pub(super) domain: Spanned<String>,
    pub(super) nodes: Vec<Descriptor>,
    /// Keys that `envoyproxy/ratelimit` accepts and ignores, because they are in a mapping in which
    /// they have no effect.
    pub(super) ignored: Vec<(String, Span)>,
}

/// One descriptor of the configuration file, with the descriptors below it.
#[derive(Debug)]
pub(super) struct Descriptor {
    pub(super) at: Span,
    pub(super) key: String,
    /// The value of the descriptor. An empty text means that every value matches.
    pub(super) value: String,
    pub(super) limit: Option<RateLimit>,
    pub(super) shadow_mode: Option<Span>,
    pub(super) quota_mode: Option<Span>,
    pub(super) detailed_metric: Option<Span>,
    pub(super) value_to_metric: Option<Span>,
    pub(super) share_threshold: Option<Span>,
    pub(super) metadata: Option<Spanned<Metadata>>,
    pub(super) below: Vec<Self>,
    pub(super) ignored: Vec<(String, Span)>,
}

/// The rate limit of a descriptor, with its name and the names of the rate limits that it replaces.
#[derive(Debug)]
pub(super) struct RateLimit {
    pub(super) at: Span,
    pub(super) rate: Rate,
    pub(super) name: Option<Spanned<String>>,
    pub(super) replaces: Vec<Spanned<String>>,
}

/// The rate that a descriptor admits.
#[derive(Debug)]
pub(super) enum Rate {
    Unlimited,
    /// At most `requests` requests in each period of `units` times `unit`. The number 0 blocks
    /// every request.
    Limited {
        requests: u32,
        unit: TimeUnit,
        units: u32,
    },
}

/// Parses a configuration file. Returns `None` after reporting mistakes, which
/// `envoyproxy/ratelimit` rejects too.
pub(super) fn read(file: &SourceFile<'_>, report: &mut Report<'_>) -> Option<Source> {
    let document = document(file.text, report)?;
    let mut fields = Fields::open(&document, "a domain with descriptors", report)?;
    let domain = fields.text("domain", report);
    if domain.is_none() && report.is_clean() {
        report.plain_error(document.at, "a file needs a `domain`");
    }
    let nodes = descriptors(&mut fields, report);
    Some(Source { file: file.name.into(), domain: domain?, nodes, ignored: ignored(fields) })
}

fn descriptors(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Vec<Descriptor> {
    let nodes = fields.list("descriptors", report).unwrap_or_default();
    nodes.iter().filter_map(|node| descriptor(node, report)).collect()
}

fn descriptor(node: &Node, report: &mut Report<'_>) -> Option<Descriptor> {
    let mut fields = Fields::open(node, "a descriptor", report)?;
    let key = fields.text("key", report);
    if key.is_none() {
        report.plain_error(node.at, "a descriptor needs a `key`");
    }
    let value = fields.text("value", report);
    let limit = fields.take("rate_limit").and_then(|(at, node)| rate_limit(at, node, report));
    let descriptor = Descriptor {
        at: node.at,
        key: key.map_or_else(String::new, |key| key.value),
        value: value.as_ref().map_or_else(String::new, |value| value.value.clone()),
        limit,
        shadow_mode: fields.switch("shadow_mode", report),
        quota_mode: fields.switch("quota_mode", report),
        detailed_metric: fields.switch("detailed_metric", report),
        value_to_metric: fields.switch("value_to_metric", report),
        share_threshold: fields.switch("share_threshold", report),
        metadata: fields.metadata("metadata", report),
        below: descriptors(&mut fields, report),
        ignored: ignored(fields),
    };
    if let Some(at) = descriptor.share_threshold.filter(|_| !descriptor.value.contains('*')) {
        let hint = "the server refuses the file";
        report.error(at, "share_threshold needs a value with a `*`", hint);
    }
    if let Some(value) = value.filter(|value| value.value.contains('*'))
        && let Err(error) = Pattern::parse(&value.value)
    {
        let message = format_args!("{} is not a pattern", quoted(&value.value));
        report.error(value.at, message, error);
    }
    Some(descriptor)
}

fn rate_limit(at: Span, node: &Node, report: &mut Report<'_>) -> Option<RateLimit> {
    let mut fields = Fields::open(node, "a rate_limit", report)?;
    let unlimited = fields.switch("unlimited", report);
    let requests = fields.number("requests_per_unit", report);
    let units = fields.number("unit_multiplier", report);
    let unit = fields.text("unit", report);
    let name = fields.text("name", report);
    let known = unit.as_ref().map(|unit| time_unit(&unit.value));
    let rate = match (unlimited, known) {
        (Some(at), Some(Some(_))) => {
            report.plain_error(at, "a limit is either unlimited or has a unit");
            return None;
        }
        (Some(_), _) => Rate::Unlimited,
        (None, Some(Some(unit))) => {
            let units = units.map_or(1, |units| units.value.max(1));
            Rate::Limited { requests: requests.map_or(0, |one| one.value), unit, units }
        }
        (None, _) => {
            let (at, message) = match &unit {
                Some(unit) => (unit.at, format!("unknown unit {}", quoted(&unit.value))),
                None => (at, "a rate_limit needs a `unit`".to_owned()),
            };
            report.error_with_suggestion(at, message, "", UNITS.iter().map(|(name, _)| *name));
            return None;
        }
    };
    let replaces = fields.list("replaces", report).unwrap_or_default();
    let replaces = replaces.iter().filter_map(|node| replaced(node, report)).collect();
    Some(RateLimit { at, rate, name, replaces })
}

fn replaced(node: &Node, report: &mut Report<'_>) -> Option<Spanned<String>> {
    let name = Fields::open(node, "a `name` to replace", report)?.text("name", report);
    if name.is_none() {
        report.plain_error(node.at, "expected the `name` to replace");
    }
    name
}

const UNITS: [(&str, TimeUnit); 7] = [
    ("second", TimeUnit::Second),
    ("minute", TimeUnit::Minute),
    ("hour", TimeUnit::Hour),
    ("day", TimeUnit::Day),
    ("week", TimeUnit::Week),
    ("month", TimeUnit::Month),
    ("year", TimeUnit::Year),
];

fn time_unit(text: &str) -> Option<TimeUnit> {
    UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, unit)| *unit)
}

fn ignored(fields: Fields<'_>) -> Vec<(String, Span)> {
    fields.left().into_iter().map(|(key, at)| (key.to_owned(), at)).collect()
}
