//! Traces: what became of a request, as a part of the trace that its caller began.
//!
//! A [`Tracer`] that is on opens a span for each request at a listener, by the caller's
//! [`traceparent`](https://www.w3.org/TR/trace-context/). What happens while the request's future is
//! polled belongs to that span: the limiter writes its decision there, [`Sharded`](crate::store::Sharded)
//! opens a child for each call of a shard, and whoever passes the request on
//! [tells the next](inject) whose child it is. Finished spans wait in a bounded queue for
//! whoever exports them ([`SpanReceiver`]); what finds the queue full is counted and gone, nobody waits.
//!
//! A tracer is off by default; then a request pays a few comparisons for it, and no allocation.

mod active;
mod context;
mod decision;
mod sampler;
mod span;
mod tracer;

pub use active::{
    InSpan, child, current, inject, instrument, is_recording, record, record_failure, record_status,
};
pub use context::{MAX_TRACE_STATE_BYTES, SpanContext, SpanId, TraceId};
pub use sampler::{ParentSampling, Sampler};
pub use span::{AttributeValue, MAX_ATTRIBUTES, Span, SpanKind, SpanOutcome};
pub use tracer::{OpenSpan, SPAN_QUEUE, SpanCounts, SpanReceiver, Tracer};
