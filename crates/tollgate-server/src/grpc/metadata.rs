//! The dynamic metadata of a response, for Envoy's other filters and its access log.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use tollgate::model::policy::descriptors::{
    DescriptorOutcome, Metadata, PlannedDescriptor, QuotaGroup,
};

use super::evaluation::DescriptorEvaluation;
use super::proto::{Entry, RateLimitDescriptor, RateLimitRequest};

const BACKEND: &str = "backend_name";
const MODEL: &str = "model_name_override";

/// Returns the metadata of a response, in the form of the reference server (envoyproxy/ratelimit).
/// The metadata contains the request, the backends with quota left, and the metadata that the
/// policy sets for the descriptors that are not over their limits. Returns `None` if the policy
/// sets no metadata and has no quota groups, because Envoy already has all other data.
pub(super) fn metadata(
    request: &RateLimitRequest,
    evaluation: &DescriptorEvaluation<'_>,
) -> Option<Struct> {
    let descriptors = &evaluation.plan.descriptors;
    let has_quota = descriptors.iter().any(|descriptor| descriptor.group.is_some());
    let has_metadata = |descriptor: &PlannedDescriptor<'_>| {
        descriptor.rule.is_some_and(|rule| rule.metadata != Metadata::Null)
    };
    if !has_quota && !descriptors.iter().any(has_metadata) {
        return None;
    }
    let available: Vec<usize> = available(evaluation).collect();
    let mut fields = Struct::default();
    fields.put("domain", text(&request.domain));
    fields.put("descriptors", list(request.descriptors.iter().map(descriptor)));
    if request.hits_addend != 0 {
        fields.put("hitsAddend", number(f64::from(request.hits_addend)));
    }
    let request_metadata = request_metadata(evaluation, &available);
    if !request_metadata.fields.is_empty() {
        fields.put("metadata", value(Kind::StructValue(request_metadata)));
    }
    let backends = backends(request, evaluation, &available);
    if has_quota && !backends.is_empty() {
        fields.put("passedBackends", list(backends.into_iter()));
    }
    Some(fields)
}

/// Returns the indices of the descriptors that are not over their limits, and that do not belong to
/// a group that is over its limits.
fn available(evaluation: &DescriptorEvaluation<'_>) -> impl Iterator<Item = usize> {
    let descriptors = &evaluation.plan.descriptors;
    let over = |group: Option<QuotaGroup>| {
        group.is_some()
            && (0..descriptors.len())
                .any(|index| evaluation.is_over[index] && descriptors[index].group == group)
    };
    (0..descriptors.len())
        .filter(move |index| !evaluation.is_over[*index] && !over(descriptors[*index].group))
}

/// Merges the metadata of the `available` descriptors. If two descriptors set the same field, the
/// first one wins.
fn request_metadata(evaluation: &DescriptorEvaluation<'_>, available: &[usize]) -> Struct {
    let mut joined = Struct::default();
    for index in available {
        let descriptor = &evaluation.plan.descriptors[*index];
        let is_counted = matches!(descriptor.outcome, DescriptorOutcome::Limited(_));
        let rule = descriptor.rule.filter(|_| is_counted);
        if let Some(Kind::StructValue(own)) = rule.and_then(|rule| written(&rule.metadata).kind) {
            join(&mut joined, own);
        }
    }
    joined
}

fn join(joined: &mut Struct, own: Struct) {
    for (name, value) in own.fields {
        let Some(old) = joined.fields.get_mut(&name) else {
            joined.fields.insert(name, value);
            continue;
        };
        if let (Some(Kind::StructValue(old)), Some(Kind::StructValue(own))) =
            (&mut old.kind, value.kind)
        {
            join(old, own);
        }
    }
}

/// Returns the backends and models that have quota left, each of them once.
fn backends(
    request: &RateLimitRequest,
    evaluation: &DescriptorEvaluation<'_>,
    available: &[usize],
) -> Vec<Value> {
    let mut seen = Vec::new();
    let mut backends = Vec::new();
    for index in available {
        let entries = &request.descriptors[*index].entries;
        let own = (last(entries, BACKEND), last(entries, MODEL));
        let is_named = own.0.is_some() || own.1.is_some();
        let has_quota = evaluation.plan.descriptors[*index].group.is_some();
        if has_quota && is_named && !seen.contains(&own) {
            seen.push(own);
            let mut fields = Struct::default();
            fields.put(BACKEND, shown(own.0.unwrap_or_default()));
            fields.put(MODEL, shown(own.1.unwrap_or_default()));
            backends.push(value(Kind::StructValue(fields)));
        }
    }
    backends
}

/// Returns the value of the last entry with this key, or `None` if that value is empty or no entry
/// has the key.
fn last<'e>(entries: &'e [Entry], key: &str) -> Option<&'e [u8]> {
    let last = entries.iter().rfind(|entry| entry.key == key)?;
    Some(&*last.value).filter(|value| !value.is_empty())
}

fn descriptor(descriptor: &RateLimitDescriptor) -> Value {
    let mut fields = Struct::default();
    let entry =
        |entry: &Entry| text(&format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value)));
    fields.put("entries", list(descriptor.entries.iter().map(entry)));
    if let Some(limit) = &descriptor.limit {
        let unit = limit.unit().as_str_name();
        let rate_text = format!("requests_per_unit:{} unit:{unit}", limit.requests_per_unit);
        fields.put("limit", text(&rate_text));
    }
    if let Some(units) = descriptor.hits_addend {
        // JSON numbers are exact up to 2^53.
        fields.put("hitsAddend", number(units as f64));
    }
    value(Kind::StructValue(fields))
}

/// Converts a policy's metadata to the protocol's form.
fn written(metadata: &Metadata) -> Value {
    match metadata {
        Metadata::Null => value(Kind::NullValue(0)),
        Metadata::Bool(is) => value(Kind::BoolValue(*is)),
        Metadata::Number(it) => number(*it),
        Metadata::Text(it) => text(it),
        Metadata::List(values) => list(values.iter().map(written)),
        Metadata::Map(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| (name.to_string(), written(value)));
            value(Kind::StructValue(Struct { fields: pairs.collect() }))
        }
    }
}

const fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn text(text: &str) -> Value {
    value(Kind::StringValue(text.to_owned()))
}

/// Returns a caller's value in readable form: bytes that are not UTF-8 are replaced by U+FFFD.
fn shown(value: &[u8]) -> Value {
    text(&String::from_utf8_lossy(value))
}

const fn number(number: f64) -> Value {
    value(Kind::NumberValue(number))
}

fn list(values: impl Iterator<Item = Value>) -> Value {
    value(Kind::ListValue(ListValue { values: values.collect() }))
}

trait PutField {
    fn put(&mut self, name: &str, value: Value);
}

impl PutField for Struct {
    fn put(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }
}
