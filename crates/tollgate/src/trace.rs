//! Tracing with OpenTelemetry: spans of requests, in the traces that the callers began.
//!
//! A [`Tracer`] that is on opens a span for each request at a listener. The span is a child of the
//! caller's [`traceparent`](https://www.w3.org/TR/trace-context/), or of the active span if the
//! program opens spans itself. Everything that happens while the request's future is polled belongs
//! to that span: the limiter records its decision, a store of shards opens a child span for each
//! call of a shard, and a proxy [propagates](inject) the span upstream. The tracer's provider
//! selects which traces are recorded, and exports them.
//!
//! A tracer is off by default; a request then costs a few comparisons and no allocation.
//!
//! Spans are made with the OpenTelemetry API and not with the crate `tracing`, which writes the
//! log. A span of `tracing` has no trace id and no `tracestate`, so a bridge to OpenTelemetry would
//! be needed to continue the caller's trace and to propagate the span. A span of `tracing` also
//! needs a subscriber of the whole program, and here each limiter has a tracer of its own.

mod decision;
mod parent;
mod span;
mod tracer;

pub use opentelemetry;
pub use opentelemetry::trace::SpanKind;
pub use parent::MAX_TRACE_STATE_BYTES;
pub use span::{
    InSpan, OpenSpan, child, inject, instrument, is_recording, record, record_failure,
    record_status,
};
pub use tracer::Tracer;
