//! The wire form of spans: the messages of `opentelemetry.proto.trace.v1` with the fields that are
//! used here.

use prost::{Message, Oneof};
use tollgate::trace::{AttributeValue, Span, SpanKind, SpanOutcome};

/// Encodes the request that exports `spans` of `resource` to a collector.
pub(super) fn request(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let scope = Scope { name: SCOPE.to_owned(), version: VERSION.to_owned() };
    let spans = spans.iter().map(WireSpan::of).collect();
    let spans = ResourceSpans {
        resource: Some(resource.clone()),
        scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
    };
    ExportTraceServiceRequest { resource_spans: vec![spans] }.encode_to_vec()
}

/// Returns how many spans a collector rejected, according to a response with a success status.
pub(super) fn rejected(answer: &[u8]) -> u64 {
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    let rejected = answer.partial_success.unwrap_or_default().rejected_spans;
    u64::try_from(rejected).unwrap_or_default()
}

const SCOPE: &str = "tollgate";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The flags of a span: the lowest bit means that its trace is sampled.
const SAMPLED: u32 = 1;

const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ExportTraceServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_spans: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

/// The process that exports the spans.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<WireSpan>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct WireSpan {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "AnyValueOf", tags = "1, 3, 5")]
    value: Option<AnyValueOf>,
}

#[derive(Clone, PartialEq, Oneof)]
enum AnyValueOf {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
}

#[derive(Clone, PartialEq, Message)]
struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnyValue>,
}

impl Resource {
    pub(super) fn new<'a>(attributes: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let attribute = |(key, value): (&str, &str)| key_value(key, text(value));
        Self { attributes: attributes.map(attribute).collect() }
    }
}

impl WireSpan {
    fn of(span: &Span) -> Self {
        let attributes = span.attributes.iter().map(|(key, value)| key_value(key, any(value)));
        let status = match &span.outcome {
            SpanOutcome::Done => None,
            SpanOutcome::Failed(why) => {
                Some(Status { message: why.to_string(), code: STATUS_ERROR })
            }
        };
        Self {
            trace_id: span.context.trace.as_bytes().to_vec(),
            span_id: span.context.span.as_bytes().to_vec(),
            trace_state: span.state.as_deref().unwrap_or_default().to_owned(),
            parent_span_id: span.parent.map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
            name: span.name.to_string(),
            kind: match span.kind {
                SpanKind::Internal => 1,
                SpanKind::Server => 2,
                SpanKind::Client => 3,
            },
            start_time_unix_nano: span.began,
            end_time_unix_nano: span.ended,
            attributes: attributes.collect(),
            status,
            flags: SAMPLED,
        }
    }
}

fn key_value(key: &str, value: AnyValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(value) }
}

fn any(value: &AttributeValue) -> AnyValue {
    match value {
        AttributeValue::Text(it) => text(it),
        AttributeValue::Integer(it) => integer(*it),
        AttributeValue::Texts(them) => array(them.iter().map(|it| text(it))),
        AttributeValue::Integers(them) => array(them.iter().map(|it| integer(*it))),
    }
}

fn text(text: &str) -> AnyValue {
    AnyValue { value: Some(AnyValueOf::Text(text.to_owned())) }
}

const fn integer(number: i64) -> AnyValue {
    AnyValue { value: Some(AnyValueOf::Integer(number)) }
}

fn array(values: impl Iterator<Item = AnyValue>) -> AnyValue {
    AnyValue { value: Some(AnyValueOf::Array(ArrayValue { values: values.collect() })) }
}
