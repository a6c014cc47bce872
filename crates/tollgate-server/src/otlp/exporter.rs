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

/// The most spans of one export.
pub const MAX_BATCH: usize = 512;

/// How long spans wait for others that go with them.
pub const BATCH_WAIT: Duration = Duration::from_secs(1);

/// How often a batch is sent to a collector that says that it is busy, or nothing; then it is gone.
pub const EXPORT_ATTEMPTS: u32 = 4;

/// How long the last spans have at the end of the process.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the second attempt waits after the first; each further one twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// The most bytes of an answer that are looked at.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Which process tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterIdentity {
    /// The service that the collector files its spans under.
    pub service: String,
    /// The version of the program.
    pub version: String,
    /// What else there is to tell of it, by keys of the collector's own.
    pub attributes: Vec<(String, String)>,
}

/// What became of spans that came out of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// A collector took them.
    pub exported: u64,
    /// None did, or it refused them: they are gone.
    pub lost: u64,
}

/// Posts spans to a collector until it is [finished](Self::finish) or dropped.
pub struct Exporter {
    counts: Arc<Counts>,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Posts what comes out of `spans` to `endpoint` by its `connector`, in the name of `origin`. Needs a
    /// tokio runtime with a timer and sockets.
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

    /// What became of spans so far.
    #[must_use]
    pub fn counter(&self) -> ExportCounter {
        ExportCounter(Arc::clone(&self.counts))
    }

    /// Posts what is still in the queue, once, within [`FLUSH_TIMEOUT`], and ends.
    pub async fn finish(mut self) {
        if let Some(end) = self.end.take() {
            // An end that nobody waits for any more has come.
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

/// Says what became of spans, also when the exporter has ended.
#[derive(Clone, Debug)]
pub struct ExportCounter(Arc<Counts>);

impl ExportCounter {
    /// What became of them so far.
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

/// Whether the last batch arrived: each turn is told once.
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
        // A batch that was under way is sent again: a collector knows spans by their ids.
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

    /// Sends `batch` until a collector takes it, at most so many times.
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
        let late = |_| ExportError { why: "it does not answer".to_owned(), is_final: false };
        timeout(EXPORT_TIMEOUT, answered).await.map_err(late)?
    }

    fn log_state_change(&mut self, state: ExportState, why: &str) {
        if state == self.state {
            return;
        }
        self.state = state;
        let collector = &self.endpoint;
        match state {
            ExportState::Healthy => tracing::info!(%collector, "the collector takes spans again"),
            ExportState::Failing => {
                tracing::warn!(%collector, "spans are lost: the collector: {why}");
            }
        }
    }
}

/// Waits for more spans, until there are many or the first has waited long enough.
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

/// Why a collector took nothing.
struct ExportError {
    why: String,
    /// Whether it will say the same again.
    is_final: bool,
}

impl ExportError {
    fn silence(error: &hyper_util::client::legacy::Error) -> Self {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        Self { why: format!("{error}{cause}"), is_final: false }
    }

    /// Which answers ask to be tried again, OTLP says.
    fn status(status: StatusCode) -> Self {
        let is_final = !matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Self { why: format!("it answers {status}"), is_final }
    }
}
