//! Work within a span, and the attributes that this work records in the span.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode};
use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::{Span, SpanKind, SpanRef, Status, TraceContextExt, Tracer as _};
use opentelemetry::{Context, KeyValue, Value};
use pin_project_lite::pin_project;

use super::parent::{TRACEPARENT, TRACESTATE, traceparent};
use crate::clock::{Stopwatch, epoch_nanos};

/// The data that all spans of a request share, stored in their OpenTelemetry contexts. Spans that
/// other code opened have no `RequestTrace`, and are neither changed nor continued.
pub(super) struct RequestTrace {
    tracer: Arc<BoxedTracer>,
    /// Whether the request's `tracestate` is forwarded.
    has_state: bool,
    /// The wall clock at the start of the stopwatch. All spans of a request take their times from
    /// this pair. If each span read the wall clock itself, a child could end after its parent.
    began: SystemTime,
    running: Stopwatch,
}

impl RequestTrace {
    pub(super) fn new(tracer: Arc<BoxedTracer>, has_state: bool) -> Self {
        let began = UNIX_EPOCH + Duration::from_nanos(epoch_nanos());
        Self { tracer, has_state, began, running: Stopwatch::start() }
    }

    fn now(&self) -> SystemTime {
        self.began + Duration::from_nanos(self.running.nanos())
    }
}

impl fmt::Debug for RequestTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTrace").field("has_state", &self.has_state).finish_non_exhaustive()
    }
}

/// Returns whether the current span is recorded.
#[must_use]
pub fn is_recording() -> bool {
    Context::map_current(|context| recording(context).is_some())
}

/// Adds an attribute to the current span, if this span is recorded.
pub fn record(name: &'static str, value: impl Into<Value>) {
    with_recording(|span| span.set_attribute(KeyValue::new(name, value)));
}

/// Marks the current span as failed. `why` is the reason that the span records.
pub fn record_failure(why: impl Into<Cow<'static, str>>) {
    with_recording(|span| span.set_status(Status::error(why)));
}

/// Records the status of the response. A status of 500 and above marks the span as failed.
pub fn record_status(status: StatusCode) {
    with_recording(|span| {
        let code = status.as_u16();
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(code)));
        if status.is_server_error() {
            span.set_status(Status::error(format!("answered with {code}")));
        }
    });
}

/// Opens a child of the current span. Opens no span if the current span is not recorded.
pub fn child(kind: SpanKind, name: impl Into<Cow<'static, str>>) -> OpenSpan {
    let parent = Context::map_current(|context| recording(context).map(|_| context.clone()));
    let opened =
        parent.and_then(|parent| Some(OpenSpan::start(parent.get()?, &parent, kind, name.into())));
    opened.unwrap_or_default()
}

/// Wraps `work` to run within the current span when another task runs it.
pub fn instrument<F: Future>(work: F) -> InSpan<F> {
    let current = Context::map_current(|context| {
        context.get::<RequestTrace>().map(|_| Box::new(SpanWork::within(context.clone())))
    });
    InSpan { span: current, work }
}

/// Writes the current span into the `headers` of a request as the parent of the receiver's span.
/// Without a trace the headers stay unchanged.
pub fn inject(headers: &mut HeaderMap) {
    Context::map_current(|context| inject_from(context, headers));
}

fn inject_from(context: &Context, headers: &mut HeaderMap) {
    let Some(trace) = context.get::<RequestTrace>() else { return };
    headers.insert(TRACEPARENT, traceparent(context.span().span_context()));
    if !trace.has_state {
        // Without a parent, or with a `tracestate` that is longer than a proxy has to forward, no
        // `tracestate` is sent.
        headers.remove(TRACESTATE);
    }
}

/// Returns the span of `context`, if `context` has a [`RequestTrace`] and the span is recorded.
fn recording(context: &Context) -> Option<SpanRef<'_>> {
    context.get::<RequestTrace>()?;
    Some(context.span()).filter(SpanRef::is_recording)
}

fn with_recording(record: impl FnOnce(&SpanRef<'_>)) {
    Context::map_current(|context| recording(context).as_ref().map(record));
}

/// A span that was opened for a request or a call, or no span if there is no trace.
#[derive(Debug, Default)]
#[must_use = "a span is of the work that runs within it"]
pub struct OpenSpan(Option<Box<SpanWork>>);

impl OpenSpan {
    /// Opens a span of `trace` as a child of the span of `parent`.
    pub(super) fn start(
        trace: &RequestTrace,
        parent: &Context,
        kind: SpanKind,
        name: Cow<'static, str>,
    ) -> Self {
        let builder = trace.tracer.span_builder(name).with_kind(kind);
        let builder = builder.with_start_time(trace.now());
        let span = builder.start_with_context(&*trace.tracer, parent);
        let ends = span.is_recording();
        Self(Some(Box::new(SpanWork { context: parent.with_span(span), ends })))
    }

    /// Writes this span into the `headers` of a request as the parent of the receiver's span. If
    /// this span is not recorded, writes the [current](inject) span instead.
    pub fn inject(&self, headers: &mut HeaderMap) {
        match &self.0 {
            Some(span) => inject_from(&span.context, headers),
            None => inject(headers),
        }
    }

    /// Runs `work` within this span. The span ends with the work, or when the work is dropped.
    pub fn run<F: Future>(self, work: F) -> InSpan<F> {
        InSpan { span: self.0, work }
    }
}

/// The context in which work runs. If the span of the context ends with the work, this value also
/// ends the span.
#[derive(Debug)]
struct SpanWork {
    context: Context,
    /// Whether the span is recorded and ends with this work.
    ends: bool,
}

impl SpanWork {
    /// Creates a context for work that does not end the span of `context`.
    const fn within(context: Context) -> Self {
        Self { context, ends: false }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.ends)
            && let Some(trace) = self.context.get::<RequestTrace>()
        {
            self.context.span().end_with_timestamp(trace.now());
        }
    }
}

impl Drop for SpanWork {
    fn drop(&mut self) {
        if self.ends {
            self.context.span().set_status(Status::error("aborted before its end"));
            self.end();
        }
    }
}

pin_project! {
    /// Work within a span, or without one.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct InSpan<F> {
        span: Option<Box<SpanWork>>,
        #[pin]
        work: F,
    }
}

impl<F: Future> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, waker: &mut std::task::Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(span) = this.span else { return this.work.poll(waker) };
        let attached = span.context.clone().attach();
        let output = ready!(this.work.poll(waker));
        drop(attached);
        span.end();
        Poll::Ready(output)
    }
}
