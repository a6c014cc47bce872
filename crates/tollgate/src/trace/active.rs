//! Work within a span, and what it records there.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use pin_project_lite::pin_project;

use super::context::{SpanContext, SpanId, TRACEPARENT, TRACESTATE};
use super::recorder::Recorder;
use super::span::{AttributeValue, MAX_ATTRIBUTES, Span, SpanKind, SpanOutcome};
use crate::clock::{Stopwatch, epoch_nanos};

tokio::task_local! {
    /// The current span of the task.
    static CURRENT: Arc<ActiveSpan>;
}

/// Returns the current span, if there is one.
#[must_use]
pub fn current() -> Option<SpanContext> {
    CURRENT.try_with(|active| active.context).ok()
}

/// Whether the current span is recorded.
#[must_use]
pub fn is_recording() -> bool {
    CURRENT.try_with(|active| active.recording.is_some()).unwrap_or_default()
}

/// Adds an attribute to the current span, if it is recorded.
pub fn record(name: &'static str, value: impl Into<AttributeValue>) {
    with_recording(|recording| {
        let mut said = recording.said.lock();
        if said.attributes.len() < MAX_ATTRIBUTES {
            said.attributes.push((name, value.into()));
        }
    });
}

/// Marks the current span as failed, with the reason.
pub fn record_failure(why: impl Into<Cow<'static, str>>) {
    with_recording(|recording| recording.said.lock().outcome = SpanOutcome::Failed(why.into()));
}

/// Records the status of the response. A status of 500 and above marks the span as failed.
pub fn record_status(status: StatusCode) {
    with_recording(|_| {
        record("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            record_failure(format!("answered with {}", status.as_u16()));
        }
    });
}

/// Opens a child of the current span; none if that is not recorded.
pub fn child(kind: SpanKind, name: impl Into<Cow<'static, str>>) -> OpenSpan {
    let open = |parent: &Arc<ActiveSpan>| {
        let recorder = Arc::clone(&parent.recording.as_ref()?.recorder);
        let context = SpanContext { span: SpanId::random(), ..parent.context };
        let begun = Some((recorder, name.into(), kind));
        Some(ActiveSpan::new(context, Some(parent.context.span), parent.state.clone(), begun))
    };
    OpenSpan(CURRENT.try_with(open).ok().flatten())
}

/// Wraps `work` for another task, within the current span.
pub fn instrument<F: Future>(work: F) -> InSpan<F> {
    InSpan { active: CURRENT.try_with(Arc::clone).ok(), ends: None, work }
}

/// Writes the current span into the `headers` of a request. Without a trace they stay unchanged.
pub fn inject(headers: &mut HeaderMap) {
    let _ = CURRENT.try_with(|active| active.inject(headers));
}

fn with_recording(tell: impl FnOnce(&Recording)) {
    let _ = CURRENT.try_with(|active| active.recording.as_ref().map(tell));
}

/// A span that has not ended yet.
#[derive(Debug)]
pub(super) struct ActiveSpan {
    context: SpanContext,
    parent: Option<SpanId>,
    state: Option<Box<str>>,
    recording: Option<Recording>,
}

/// The recorded data of a span.
#[derive(Debug)]
struct Recording {
    recorder: Arc<Recorder>,
    name: Cow<'static, str>,
    kind: SpanKind,
    began: u64,
    running: Stopwatch,
    said: Mutex<SpanRecord>,
}

#[derive(Debug, Default)]
struct SpanRecord {
    attributes: Vec<(&'static str, AttributeValue)>,
    outcome: SpanOutcome,
}

impl ActiveSpan {
    pub(super) fn new(
        context: SpanContext,
        parent: Option<SpanId>,
        state: Option<Box<str>>,
        begun: Option<(Arc<Recorder>, Cow<'static, str>, SpanKind)>,
    ) -> Arc<Self> {
        let recording = begun.map(|(recorder, name, kind)| Recording {
            recorder,
            name,
            kind,
            began: epoch_nanos(),
            running: Stopwatch::start(),
            said: Mutex::default(),
        });
        Arc::new(Self { context, parent, state, recording })
    }

    pub(super) fn inject(&self, headers: &mut HeaderMap) {
        headers.insert(TRACEPARENT, self.context.traceparent());
        if self.state.is_none() {
            // There is no parent, or its `tracestate` is longer than a proxy has to forward.
            headers.remove(TRACESTATE);
        }
    }

    fn end(&self) {
        let Some(recording) = &self.recording else { return };
        let said = std::mem::take(&mut *recording.said.lock());
        recording.recorder.record(Span {
            context: self.context,
            parent: self.parent,
            state: self.state.clone(),
            name: recording.name.clone(),
            kind: recording.kind,
            began: recording.began,
            // By a monotonic clock.
            ended: recording.began.saturating_add(recording.running.nanos()),
            attributes: said.attributes,
            outcome: said.outcome,
        });
    }
}

/// A span that was opened, or none if there is no trace.
#[derive(Debug, Default)]
#[must_use = "a span is of the work that runs within it"]
pub struct OpenSpan(pub(super) Option<Arc<ActiveSpan>>);

impl OpenSpan {
    /// Writes this span into the `headers` of a request. If this span is not recorded, writes the
    /// [current](inject) one.
    pub fn inject(&self, headers: &mut HeaderMap) {
        match &self.0 {
            Some(active) => active.inject(headers),
            None => inject(headers),
        }
    }

    /// Runs `work` within this span. The span ends with the work, or when the work is dropped.
    pub fn run<F: Future>(self, work: F) -> InSpan<F> {
        InSpan::ending(self.0, work)
    }
}

pin_project! {
    /// Work within a span, or without one.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct InSpan<F> {
        active: Option<Arc<ActiveSpan>>,
        ends: Option<Ending>,
        #[pin]
        work: F,
    }
}

/// Ends a span with its work, or when the work is dropped before its end.
#[derive(Debug)]
struct Ending(Option<Arc<ActiveSpan>>);

impl Ending {
    fn end(&mut self) {
        if let Some(active) = self.0.take() {
            active.end();
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(recording) = self.0.as_ref().and_then(|active| active.recording.as_ref()) {
            let mut said = recording.said.lock();
            if said.outcome == SpanOutcome::Done {
                said.outcome = SpanOutcome::Failed("aborted before its end".into());
            }
        }
        self.end();
    }
}

impl<F> InSpan<F> {
    fn ending(active: Option<Arc<ActiveSpan>>, work: F) -> Self {
        Self { ends: active.clone().map(|active| Ending(Some(active))), active, work }
    }
}

impl<F: Future> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(active) = this.active else { return this.work.poll(context) };
        let output = ready!(CURRENT.sync_scope(Arc::clone(active), || this.work.poll(context)));
        if let Some(ends) = this.ends {
            ends.end();
        }
        Poll::Ready(output)
    }
}
