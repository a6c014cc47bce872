//! The queue of ended spans.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, Span, SpanData, SpanProcessor};
use tokio::sync::mpsc;
use tollgate::Tracer;
use tollgate::trace::opentelemetry::trace::TracerProvider;
use tollgate::trace::opentelemetry::{Context, InstrumentationScope};

/// The most ended spans that wait for their export. Further spans are dropped.
pub const SPAN_QUEUE: usize = 4_096;

/// The most attributes of a span. Further attributes are dropped.
pub const MAX_ATTRIBUTES: u32 = 32;

/// Creates a tracer that records the traces which `sampler` selects, and the receiving end of the
/// queue of its ended spans.
#[must_use]
pub fn tracer(sampler: Sampler) -> (Tracer, SpanReceiver) {
    let (queue, spans) = mpsc::channel(SPAN_QUEUE);
    let dropped = Arc::new(AtomicU64::new(0));
    let provider = SdkTracerProvider::builder()
        .with_span_processor(SpanQueue { queue, dropped: Arc::clone(&dropped) })
        .with_sampler(sampler)
        .with_max_attributes_per_span(MAX_ATTRIBUTES)
        // The exporter describes the process.
        .with_resource(Resource::builder_empty().build())
        .build();
    let scope = InstrumentationScope::builder("tollgate").with_version(env!("CARGO_PKG_VERSION"));
    (Tracer::new(provider.tracer_with_scope(scope.build())), SpanReceiver { spans, dropped })
}

/// A span processor that puts ended spans into a bounded queue.
#[derive(Debug)]
struct SpanQueue {
    queue: mpsc::Sender<SpanData>,
    dropped: Arc<AtomicU64>,
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// The receiver of ended spans, for an exporter.
#[derive(Debug)]
pub struct SpanReceiver {
    spans: mpsc::Receiver<SpanData>,
    dropped: Arc<AtomicU64>,
}

impl SpanReceiver {
    /// Waits for spans and appends up to `at_most` spans to `batch`. Returns the number of appended
    /// spans, which is 0 once every tracer is dropped and the queue is empty. Cancel safe.
    pub async fn next(&mut self, batch: &mut Vec<SpanData>, at_most: usize) -> usize {
        self.spans.recv_many(batch, at_most).await
    }

    /// Rejects further spans. Spans that are already in the queue can still be received.
    pub fn close(&mut self) {
        self.spans.close();
    }

    /// Returns the counter of spans that were dropped because the queue was full.
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use tollgate::trace::record;

    use super::*;

    #[tokio::test]
    async fn what_finds_the_queue_full_is_counted_and_nobody_waits() {
        let (tracer, mut spans) = tracer(Sampler::AlwaysOn);
        for _ in 0..SPAN_QUEUE + 3 {
            tracer.begin("request").run(ready(())).await;
        }
        assert_eq!(spans.dropped().load(Ordering::Relaxed), 3);
        let mut queued = Vec::new();
        while spans.spans.try_recv().map(|span| queued.push(span)).is_ok() {}
        assert_eq!(queued.len(), SPAN_QUEUE);
    }

    #[tokio::test]
    async fn attributes_are_bounded() {
        let (tracer, mut spans) = tracer(Sampler::AlwaysOn);
        let work = async { (0_i64..100).for_each(|number| record("number", number)) };
        tracer.begin("request").run(work).await;
        let span = spans.spans.try_recv().unwrap();
        assert_eq!(span.attributes.len(), 32);
        assert!(span.end_time >= span.start_time);
    }
}
