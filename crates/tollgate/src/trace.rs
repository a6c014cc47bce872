//! Traces: what became of a request, as a part of the trace that its caller began.
//!
//! A [`Tracer`] that is on opens a span for each request at a door, by the caller's
//! [`traceparent`](https://www.w3.org/TR/trace-context/). What happens while the request's future is
//! polled belongs to that span: the limiter writes its decision there, [`Sharded`](crate::store::Sharded)
//! opens a child for each call of a shard, and whoever passes the request on
//! [tells the next](propagate) whose child it is. Finished spans wait in a bounded queue for
//! whoever exports them ([`Spans`]); what finds the queue full is counted and gone, nobody waits.
//!
//! A tracer is off by default; then a request pays a few comparisons for it, and no allocation.

mod context;
mod decision;
mod sampler;
mod span;
mod tracer;
mod within;

pub use context::{MAX_TRACE_STATE_BYTES, SpanContext, SpanId, TraceId};
pub use sampler::{Parents, Sampler};
pub use span::{Kind, MAX_ATTRIBUTES, Outcome, Span, Value};
pub use tracer::{Opened, SPAN_QUEUE, SpanCounts, Spans, Tracer};
pub use within::{
    Within, answered, carry, child, current, failed, is_recording, propagate, record,
};
