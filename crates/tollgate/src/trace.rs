//! Traces: spans of requests, in the traces that their callers began.
//!
//! A [`Tracer`] that is on opens a span for each request at a listener, as a child of the caller's
//! [`traceparent`](https://www.w3.org/TR/trace-context/). Everything that happens while the
//! request's future is polled belongs to that span: the limiter records its decision, a store of
//! shards opens a child span for each call of a shard, and a proxy [propagates](inject) the span
//! upstream. Ended spans wait in a bounded queue ([`SpanReceiver`]) for
//! their export; spans that find the queue full are counted and dropped, without blocking.
//!
//! A tracer is off by default; a request then costs a few comparisons and no allocation.
//!
//! Written by hand. For a request with a child span and seven attributes, callgrind counts 11,800
//! instructions here if its trace is not recorded, and 16,400 if it is, without the export. `tracing`
//! with `tracing-opentelemetry` 0.34 executes 27,800 and 35,300 (while tracing is off, 141 instead of
//! 360). OpenTelemetry's API alone executes 10,500 and 16,400, but its propagator parses `tracestate`
//! and writes it anew, and its batch processor reports the number of dropped spans only in a log line
//! when it ends.

mod active;
mod context;
mod decision;
mod recorder;
mod sampler;
mod span;
mod tracer;

pub use active::{
    InSpan, OpenSpan, child, current, inject, instrument, is_recording, record, record_failure,
    record_status,
};
pub use context::{MAX_TRACE_STATE_BYTES, SpanContext, SpanId, TraceId};
pub use recorder::SpanCounts;
pub use sampler::{ParentSampling, Sampler};
pub use span::{AttributeValue, MAX_ATTRIBUTES, Span, SpanKind, SpanOutcome};
pub use tracer::{SPAN_QUEUE, SpanReceiver, Tracer};
