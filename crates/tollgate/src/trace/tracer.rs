//! Who opens spans, and the queue in which those that ended wait.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use tokio::sync::mpsc;

use super::active::{ActiveSpan, InSpan, inject};
use super::context::{SpanContext, SpanId, TraceId, parent_of};
use super::sampler::Sampler;
use super::span::{Span, SpanKind};

/// SpanReceiver that ended and wait for their export; a further one is dropped.
pub const SPAN_QUEUE: usize = 4_096;

/// Opens spans, if it is on. Clones are the same tracer; the default is off.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Recorder>>);

/// SpanReceiver that ended, for who exports them.
#[derive(Debug)]
pub struct SpanReceiver(mpsc::Receiver<Span>);

/// What became of the spans that were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Were put into the queue.
    pub queued: u64,
    /// Found it full, and are gone.
    pub dropped: u64,
}

impl Tracer {
    /// One that records what `sampler` says, and where its spans come out.
    #[must_use]
    pub fn new(sampler: Sampler) -> (Self, SpanReceiver) {
        let (queue, spans) = mpsc::channel(SPAN_QUEUE);
        let recorder = Recorder { sampler, queue, queued: 0.into(), dropped: 0.into() };
        (Self(Some(Arc::new(recorder))), SpanReceiver(spans))
    }

    /// Whether it is on.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Opens the span of a request that came with `headers`: a child of the parent that they name,
    /// or the beginning of a trace. Nothing where the tracer is off; `name` is not asked then.
    pub fn serve(&self, headers: &HeaderMap, name: impl FnOnce() -> Cow<'static, str>) -> OpenSpan {
        let Some(recorder) = &self.0 else { return OpenSpan(None) };
        let (parent, state) = match parent_of(headers) {
            Some((parent, state)) => (Some(parent), state),
            None => (None, None),
        };
        let trace = parent.map_or_else(TraceId::random, |parent| parent.trace);
        let is_sampled = recorder.sampler.records(trace, parent.as_ref());
        let context = SpanContext { trace, span: SpanId::random(), is_sampled };
        let begun = is_sampled.then(|| (Arc::clone(recorder), name(), SpanKind::Server));
        OpenSpan(Some(ActiveSpan::new(context, parent.map(|parent| parent.span), state, begun)))
    }

    /// Opens the span of a request whose protocol has no place for a parent.
    pub fn begin(&self, name: &'static str) -> OpenSpan {
        if self.is_on() { self.serve(&HeaderMap::new(), || name.into()) } else { OpenSpan(None) }
    }

    /// What became of the spans so far.
    #[must_use]
    pub fn counts(&self) -> SpanCounts {
        self.0.as_ref().map_or_else(SpanCounts::default, |recorder| SpanCounts {
            queued: recorder.queued.load(Ordering::Relaxed),
            dropped: recorder.dropped.load(Ordering::Relaxed),
        })
    }
}

impl SpanReceiver {
    /// Waits for spans, and puts up to `at_most` behind those in `batch`. Says how many there were:
    /// none once every tracer is gone and the queue is empty.
    ///
    /// A caller that stops waiting loses nothing.
    pub async fn next(&mut self, batch: &mut Vec<Span>, at_most: usize) -> usize {
        self.0.recv_many(batch, at_most).await
    }

    /// Takes no more spans; those that wait are still handed out.
    pub fn close(&mut self) {
        self.0.close();
    }
}

/// A span that was opened, or nothing, where there is no trace.
#[derive(Debug, Default)]
#[must_use = "a span is of the work that runs within it"]
pub struct OpenSpan(pub(super) Option<Arc<ActiveSpan>>);

impl OpenSpan {
    /// Tells who gets a request with these `headers` whose child it is: this span's, or where that
    /// is not recorded the [caller's](inject).
    pub fn inject(&self, headers: &mut HeaderMap) {
        match &self.0 {
            Some(active) => active.inject(headers),
            None => inject(headers),
        }
    }

    /// `work`, within this span, which ends with it or when it is given up.
    pub fn run<F: Future>(self, work: F) -> InSpan<F> {
        InSpan::ending(self.0, work)
    }
}

/// Takes spans that ended.
pub(super) struct Recorder {
    sampler: Sampler,
    queue: mpsc::Sender<Span>,
    queued: AtomicU64,
    dropped: AtomicU64,
}

impl Recorder {
    pub(super) fn take(&self, span: Span) {
        let count = match self.queue.try_send(span) {
            Ok(()) => &self.queued,
            Err(_) => &self.dropped,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("sampler", &self.sampler).finish_non_exhaustive()
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

    use super::super::active::{child, current, instrument, record, record_failure};
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
        let why = ["given up before its end", "no answer"];
        let expected = why.map(|why| SpanOutcome::Failed(why.into()));
        assert_eq!([spans[0].outcome.clone(), spans[1].outcome.clone()], expected);
    }
}
