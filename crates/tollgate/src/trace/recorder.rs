//! Records ended spans.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::context::{SpanContext, TraceId};
use super::sampler::Sampler;
use super::span::Span;

/// Counts of the spans that were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans that were put into the queue.
    pub queued: u64,
    /// Spans that were dropped because the queue was full.
    pub dropped: u64,
}

/// Chooses which spans are recorded, and puts those that ended into a bounded queue.
pub(super) struct Recorder {
    sampler: Sampler,
    queue: mpsc::Sender<Span>,
    queued: AtomicU64,
    dropped: AtomicU64,
}

impl Recorder {
    pub(super) const fn new(sampler: Sampler, queue: mpsc::Sender<Span>) -> Self {
        Self { sampler, queue, queued: AtomicU64::new(0), dropped: AtomicU64::new(0) }
    }

    /// Whether the spans of `trace` are recorded.
    pub(super) fn samples(&self, trace: TraceId, parent: Option<&SpanContext>) -> bool {
        self.sampler.records(trace, parent)
    }

    /// Puts a span into the queue, or drops it if the queue is full.
    pub(super) fn record(&self, span: Span) {
        let count = match self.queue.try_send(span) {
            Ok(()) => &self.queued,
            Err(_) => &self.dropped,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> SpanCounts {
        SpanCounts {
            queued: self.queued.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("sampler", &self.sampler).finish_non_exhaustive()
    }
}
