//! The task that posts spans.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tollgate::trace::{Span, SpanReceiver};

use super::connector::{Connector, EXPORT_TIMEOUT};
use super::endpoint::Endpoint;
use super::wire::{self, Resource};

/// The most spans in one export.
pub const MAX_BATCH: usize = 512;

/// The longest time that a span waits for others to fill its batch.
pub const BATCH_WAIT: Duration = Duration::from_secs(1);

/// How often a batch is sent to a collector that reports that it is busy, or does not respond. Then
/// the batch is dropped.
pub const EXPORT_ATTEMPTS: u32 = 4;

/// The time limit for the last export at the end of the process.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before the second attempt. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// The most bytes of a response that are read.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// The process that exports the spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterIdentity {
    /// The name of the service that the collector lists the spans under.
    pub service: String,
    /// The version of the program.
    pub version: String,
    /// Further resource attributes, as keys and values of the OpenTelemetry conventions.
    pub attributes: Vec<(String, String)>,
}

/// How many spans were exported and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Spans that a collector accepted.
    pub exported: u64,
    /// Spans that were dropped, because no collector could be reached or the collector rejected
    /// them.
    pub lost: u64,
}

/// An exporter that posts spans to a collector until it is [finished](Self::finish) or dropped.
pub struct Exporter {
    counts: Arc<Counts>,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Starts to post the spans from `spans` to `endpoint` through `connector`, with `origin` as
    /// the resource. Needs a tokio runtime with a timer and sockets.
    #[must_use]
    pub fn start(
        spans: SpanReceiver,
        endpoint: Endpoint,
        connector: Connector,
        origin: &ExporterIdentity,
    ) -> Self {
        let (end, ended) = oneshot::channel();
        let counts = Arc::new(Counts::default());
        let post = Post::new(endpoint, connector, origin, Arc::clone(&counts));
        let task = tokio::spawn(post.run(spans, ended));
        Self { counts, end: Some(end), task }
    }

    /// Returns a counter of exported and lost spans.
    #[must_use]
    pub fn counter(&self) -> ExportCounter {
        ExportCounter(Arc::clone(&self.counts))
    }

    /// Posts the spans that are still in the queue, one attempt for each batch, within
    /// [`FLUSH_TIMEOUT`], and ends.
    pub async fn finish(mut self) {
        if let Some(end) = self.end.take() {
            // An error means that the task has ended already.
            let _ = end.send(());
        }
        let _ = timeout(FLUSH_TIMEOUT, &mut self.task).await;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("counts", &self.counts.read()).finish_non_exhaustive()
    }
}

/// A counter of exported and lost spans. It stays valid after the exporter has ended.
#[derive(Clone, Debug)]
pub struct ExportCounter(Arc<Counts>);

impl ExportCounter {
    /// Returns the counts so far.
    #[must_use]
    pub fn read(&self) -> ExportCounts {
        self.0.read()
    }
}

#[derive(Debug, Default)]
struct Counts {
    exported: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    fn read(&self) -> ExportCounts {
        ExportCounts {
            exported: self.exported.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }

    fn add(&self, exported: u64, lost: u64) {
        self.exported.fetch_add(exported, Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }
}

/// Whether the last batch arrived. Only a change is logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportState {
    Healthy,
    Failing,
}

struct Post {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    endpoint: Endpoint,
    resource: Resource,
    counts: Arc<Counts>,
    state: ExportState,
}

impl Post {
    fn new(
        endpoint: Endpoint,
        connector: Connector,
        origin: &ExporterIdentity,
        counts: Arc<Counts>,
    ) -> Self {
        let own = [("service.name", &*origin.service), ("service.version", &*origin.version)];
        let others = origin.attributes.iter().map(|(key, value)| (&**key, &**value));
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector.into_inner()),
            endpoint,
            resource: Resource::new(own.into_iter().chain(others)),
            counts,
            state: ExportState::Healthy,
        }
    }

    async fn run(mut self, mut spans: SpanReceiver, mut ended: oneshot::Receiver<()>) {
        let mut batch = Vec::new();
        loop {
            let next = async {
                let taken = spans.next(&mut batch, MAX_BATCH).await;
                if taken > 0 {
                    gather(&mut spans, &mut batch).await;
                    self.deliver(&batch, EXPORT_ATTEMPTS).await;
                }
                taken
            };
            tokio::select! {
                _ = &mut ended => break,
                taken = next => match taken {
                    0 => return,
                    _ => batch.clear(),
                },
            }
        }
        // A batch that was being sent is sent again: a collector recognizes spans by their ids.
        spans.close();
        loop {
            while batch.len() < MAX_BATCH && spans.next(&mut batch, MAX_BATCH).await > 0 {}
            if batch.is_empty() {
                return;
            }
            self.deliver(&batch, 1).await;
            batch.clear();
        }
    }

    /// Sends `batch` until a collector accepts it, at most `attempts` times.
    async fn deliver(&mut self, batch: &[Span], attempts: u32) {
        let body = Bytes::from(wire::request(&self.resource, batch));
        let all = batch.len() as u64;
        let mut pause = FIRST_PAUSE;
        let mut attempt = 1;
        loop {
            match self.send(body.clone()).await {
                Ok(rejected) => {
                    let rejected = rejected.min(all);
                    self.counts.add(all - rejected, rejected);
                    return self.log_state_change(ExportState::Healthy, "");
                }
                Err(refusal) if refusal.is_final || attempt >= attempts => {
                    self.counts.add(0, all);
                    return self.log_state_change(ExportState::Failing, &refusal.why);
                }
                Err(_) => sleep(pause).await,
            }
            attempt += 1;
            pause *= 2;
        }
    }

    async fn send(&self, body: Bytes) -> Result<u64, ExportError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.uri().clone();
        request.headers_mut().insert(CONTENT_TYPE, PROTOBUF);
        let answered = async {
            let answer = self.client.request(request).await;
            let answer = answer.map_err(|error| ExportError::silence(&error))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            match head.status {
                status if status.is_success() => {
                    Ok(body.map_or(0, |body| wire::rejected(&body.to_bytes())))
                }
                status => Err(ExportError::status(status)),
            }
        };
        let late =
            |_| ExportError { why: "the collector did not respond".to_owned(), is_final: false };
        timeout(EXPORT_TIMEOUT, answered).await.map_err(late)?
    }

    fn log_state_change(&mut self, state: ExportState, why: &str) {
        if state == self.state {
            return;
        }
        self.state = state;
        let collector = &self.endpoint;
        match state {
            ExportState::Healthy => tracing::info!(%collector, "the collector accepts spans again"),
            ExportState::Failing => {
                tracing::warn!(%collector, "cannot export spans, they are dropped: {why}");
            }
        }
    }
}

/// Waits for more spans, until the batch is full or the first span has waited for [`BATCH_WAIT`].
async fn gather(spans: &mut SpanReceiver, batch: &mut Vec<Span>) {
    let until = Instant::now() + BATCH_WAIT;
    while batch.len() < MAX_BATCH {
        let room = MAX_BATCH - batch.len();
        match timeout_at(until, spans.next(batch, room)).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// The reason why a collector did not accept a batch.
struct ExportError {
    why: String,
    /// Whether another attempt would fail in the same way.
    is_final: bool,
}

impl ExportError {
    fn silence(error: &hyper_util::client::legacy::Error) -> Self {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        Self { why: format!("{error}{cause}"), is_final: false }
    }

    /// Converts a status to an error. OTLP defines which statuses can be retried.
    fn status(status: StatusCode) -> Self {
        let is_final = !matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Self { why: format!("the collector responded {status}"), is_final }
    }
}
