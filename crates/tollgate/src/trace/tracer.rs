//! Opens spans for requests, and queues ended spans for their export.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use tokio::sync::mpsc;

use super::active::{ActiveSpan, OpenSpan};
use super::context::{SpanContext, SpanId, TraceId, parent_of};
use super::recorder::{Recorder, SpanCounts};
use super::sampler::Sampler;
use super::span::{Span, SpanKind};

/// The most ended spans that wait for their export; further ones are dropped.
pub const SPAN_QUEUE: usize = 4_096;

/// Opens spans, if it is on. Clones share one queue; the default is off.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Recorder>>);

/// The receiver of ended spans, for an exporter.
#[derive(Debug)]
pub struct SpanReceiver(mpsc::Receiver<Span>);

impl Tracer {
    /// Creates a tracer that records the spans that `sampler` chooses, and the queue of its spans.
    #[must_use]
    pub fn new(sampler: Sampler) -> (Self, SpanReceiver) {
        let (queue, spans) = mpsc::channel(SPAN_QUEUE);
        let recorder = Recorder::new(sampler, queue);
        (Self(Some(Arc::new(recorder))), SpanReceiver(spans))
    }

    /// Whether tracing is on.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Opens the span of a request with `headers`: a child of the parent that they name, or the
    /// first span of a trace. If the tracer is off, opens none and does not call `name`.
    pub fn serve(&self, headers: &HeaderMap, name: impl FnOnce() -> Cow<'static, str>) -> OpenSpan {
        let Some(recorder) = &self.0 else { return OpenSpan(None) };
        let (parent, state) = match parent_of(headers) {
            Some((parent, state)) => (Some(parent), state),
            None => (None, None),
        };
        let trace = parent.map_or_else(TraceId::random, |parent| parent.trace);
        let is_sampled = recorder.samples(trace, parent.as_ref());
        let context = SpanContext { trace, span: SpanId::random(), is_sampled };
        let begun = is_sampled.then(|| (Arc::clone(recorder), name(), SpanKind::Server));
        OpenSpan(Some(ActiveSpan::new(context, parent.map(|parent| parent.span), state, begun)))
    }

    /// Opens the span of a request whose protocol carries no parent.
    pub fn begin(&self, name: &'static str) -> OpenSpan {
        if self.is_on() { self.serve(&HeaderMap::new(), || name.into()) } else { OpenSpan(None) }
    }

    /// Counts of the recorded spans.
    #[must_use]
    pub fn counts(&self) -> SpanCounts {
        self.0.as_ref().map_or_else(SpanCounts::default, |recorder| recorder.counts())
    }
}

impl SpanReceiver {
    /// Waits for spans and appends up to `at_most` to `batch`. Returns their number: 0 once every
    /// tracer is dropped and the queue is empty. Cancel safe.
    pub async fn next(&mut self, batch: &mut Vec<Span>, at_most: usize) -> usize {
        self.0.recv_many(batch, at_most).await
    }

    /// Rejects further spans. Those in the queue can still be received.
    pub fn close(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tracer").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::task::Waker;

    use super::super::active::{child, current, inject, instrument, record, record_failure};
    use super::super::sampler::ParentSampling;
    use super::super::{MAX_ATTRIBUTES, SpanOutcome};
    use super::*;

    fn all() -> (Tracer, SpanReceiver) {
        Tracer::new(Sampler::new(1_000_000, ParentSampling::Follow))
    }

    fn taken(spans: &mut SpanReceiver) -> Vec<Span> {
        std::iter::from_fn(|| spans.0.try_recv().ok()).collect()
    }

    #[tokio::test]
    async fn children_and_tasks_of_their_own_belong_to_the_request() {
        let (tracer, mut spans) = all();
        let work = async {
            let own = current().unwrap();
            let carried = tokio::spawn(instrument(async { current().unwrap() })).await.unwrap();
            assert_eq!(carried, own);
            let inner = child(SpanKind::Client, "call").run(async { current().unwrap() }).await;
            assert_eq!((inner.trace, inner.span == own.span), (own.trace, false));
            let mut headers = HeaderMap::new();
            inject(&mut headers);
            assert_eq!(headers["traceparent"], own.traceparent());
            own
        };
        let own = tracer.begin("request").run(work).await;
        assert_eq!(current(), None);
        let spans = taken(&mut spans);
        let told: Vec<_> = spans.iter().map(|span| (&*span.name, span.parent)).collect();
        assert_eq!(told, [("call", Some(own.span)), ("request", None)]);
        assert_eq!(tracer.counts(), SpanCounts { queued: 2, dropped: 0 });
    }

    #[tokio::test]
    async fn where_nobody_traces_nothing_is_reported_to_anybody() {
        let work = async {
            record("a", 1_i64);
            let mut headers = HeaderMap::new();
            inject(&mut headers);
            (current(), headers)
        };
        assert_eq!(Tracer::default().begin("request").run(work).await, (None, HeaderMap::new()));
    }

    #[tokio::test]
    async fn what_finds_the_queue_full_is_counted_and_nobody_waits() {
        let (tracer, mut spans) = all();
        for _ in 0..SPAN_QUEUE + 3 {
            tracer.begin("request").run(ready(())).await;
        }
        assert_eq!(tracer.counts(), SpanCounts { queued: SPAN_QUEUE as u64, dropped: 3 });
        assert_eq!(taken(&mut spans).len(), SPAN_QUEUE);
    }

    #[tokio::test]
    async fn attributes_are_bounded_and_work_that_is_closed_has_failed() {
        let (tracer, mut spans) = all();
        let work = async {
            (0_i64..100).for_each(|number| record("number", number));
            pending::<()>().await;
        };
        {
            let mut given_up = pin!(tracer.begin("request").run(work));
            let mut context = std::task::Context::from_waker(Waker::noop());
            assert!(given_up.as_mut().poll(&mut context).is_pending());
        }
        tracer.begin("request").run(async { record_failure("no answer") }).await;
        let spans = taken(&mut spans);
        assert_eq!(spans[0].attributes.len(), MAX_ATTRIBUTES);
        let why = ["aborted before its end", "no answer"];
        let expected = why.map(|why| SpanOutcome::Failed(why.into()));
        assert_eq!([spans[0].outcome.clone(), spans[1].outcome.clone()], expected);
    }
}
