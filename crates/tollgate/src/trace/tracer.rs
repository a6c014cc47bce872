//! Opens spans for requests.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::{Span, SpanKind, TraceContextExt};

use super::parent::Parent;
use super::span::{OpenSpan, RequestTrace};

/// Opens spans, if tracing is on. Clones share one OpenTelemetry tracer. By default, tracing is
/// off.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<BoxedTracer>>);

impl Tracer {
    /// Creates a tracer that opens its spans with `tracer`, for example
    /// `opentelemetry::global::tracer("my-service")`.
    #[must_use]
    pub fn new<T>(tracer: T) -> Self
    where
        T: opentelemetry::trace::Tracer + Send + Sync + 'static,
        T::Span: Span + Send + Sync + 'static,
    {
        Self(Some(Arc::new(BoxedTracer::new(Box::new(tracer)))))
    }

    /// Returns whether tracing is on.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Opens the span of a request with `headers`. The span is a child of the program's active
    /// span, or of the parent that `headers` name. If there is no parent, the span is the first
    /// span of a trace. If the tracer is off, opens no span and does not call `name`.
    pub fn serve(&self, headers: &HeaderMap, name: impl FnOnce() -> Cow<'static, str>) -> OpenSpan {
        let Some(tracer) = &self.0 else { return OpenSpan::default() };
        let named = Parent::of(headers);
        let has_state = named.as_ref().is_some_and(|parent| parent.has_state);
        let mut parent =
            Context::current_with_value(RequestTrace::new(Arc::clone(tracer), has_state));
        if let Some(named) = named
            && !parent.has_active_span()
        {
            parent = parent.with_remote_span_context(named.context);
        }
        parent.get().map_or_else(OpenSpan::default, |trace| {
            OpenSpan::start(trace, &parent, SpanKind::Server, name())
        })
    }

    /// Opens the span of a request in a protocol that cannot transmit a parent span.
    pub fn begin(&self, name: &'static str) -> OpenSpan {
        if self.is_on() {
            self.serve(&HeaderMap::new(), || name.into())
        } else {
            OpenSpan::default()
        }
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tracer").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::Waker;
    use std::time::Duration;

    use opentelemetry::trace::{SpanContext, SpanId, Status, TracerProvider};
    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanProcessor};

    use super::super::span::{child, inject, instrument, record, record_failure};
    use super::*;

    #[derive(Debug)]
    struct Ended(mpsc::Sender<SpanData>);

    impl SpanProcessor for Ended {
        fn on_start(&self, _: &mut opentelemetry_sdk::trace::Span, _: &Context) {}

        fn on_end(&self, span: SpanData) {
            self.0.send(span).unwrap();
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }

        fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
            Ok(())
        }
    }

    fn all() -> (Tracer, mpsc::Receiver<SpanData>) {
        let (sender, spans) = mpsc::channel();
        let provider = SdkTracerProvider::builder().with_span_processor(Ended(sender)).build();
        (Tracer::new(provider.tracer("test")), spans)
    }

    fn current() -> SpanContext {
        Context::map_current(|context| context.span().span_context().clone())
    }

    #[tokio::test]
    async fn children_and_tasks_of_their_own_belong_to_the_request() {
        let (tracer, spans) = all();
        let work = async {
            let own = current();
            let carried = tokio::spawn(instrument(async { current() })).await.unwrap();
            assert_eq!(carried, own);
            let inner = child(SpanKind::Client, "call").run(async { current() }).await;
            assert_eq!(inner.trace_id(), own.trace_id());
            assert_ne!(inner.span_id(), own.span_id());
            let mut headers = HeaderMap::new();
            inject(&mut headers);
            let (trace, span) = (own.trace_id(), own.span_id());
            assert_eq!(headers["traceparent"], format!("00-{trace}-{span}-01"));
            own
        };
        let own = tracer.begin("request").run(work).await;
        assert!(!current().is_valid());
        let spans: Vec<_> = spans.try_iter().collect();
        let recorded: Vec<_> =
            spans.iter().map(|span| (&*span.name, span.parent_span_id)).collect();
        assert_eq!(recorded, [("call", own.span_id()), ("request", SpanId::INVALID)]);
        let [call, request] = &spans[..] else { unreachable!("two spans") };
        assert!(request.start_time <= call.start_time && call.end_time <= request.end_time);
    }

    #[tokio::test]
    async fn where_nobody_traces_nothing_is_reported_to_anybody() {
        let work = async {
            record("a", 1_i64);
            let mut headers = HeaderMap::new();
            inject(&mut headers);
            (current().is_valid(), headers)
        };
        assert_eq!(Tracer::default().begin("request").run(work).await, (false, HeaderMap::new()));
    }

    #[tokio::test]
    async fn the_span_of_the_program_is_the_parent_and_is_left_alone() {
        let (tracer, spans) = all();
        let outer = tracer.0.clone().unwrap();
        let outer = opentelemetry::trace::Tracer::start(&*outer, "program");
        let outer = Context::current_with_span(outer);
        let attached = outer.clone().attach();
        record("a", 1_i64);
        let none = child(SpanKind::Internal, "none").run(async { current() }).await;
        assert_eq!(none, *outer.span().span_context());
        let opened = tracer.begin("request");
        drop(attached);
        opened.run(async { record("a", 2_i64) }).await;
        outer.span().end();
        let spans: Vec<_> = spans.try_iter().collect();
        assert_eq!(spans[0].parent_span_id, outer.span().span_context().span_id());
        let recorded = spans.iter().map(|span| span.attributes.len());
        assert_eq!(recorded.collect::<Vec<_>>(), [1, 0]);
    }

    #[tokio::test]
    async fn work_that_is_closed_has_failed() {
        let (tracer, spans) = all();
        {
            let mut given_up = pin!(tracer.begin("request").run(pending::<()>()));
            let mut context = std::task::Context::from_waker(Waker::noop());
            assert!(given_up.as_mut().poll(&mut context).is_pending());
        }
        tracer.begin("request").run(async { record_failure("no answer") }).await;
        let statuses: Vec<_> = spans.try_iter().map(|span| span.status).collect();
        assert_eq!(statuses, ["aborted before its end", "no answer"].map(Status::error));
    }
}
