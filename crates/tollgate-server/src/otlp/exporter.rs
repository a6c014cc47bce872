//! The task that posts spans.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_otlp::{
    ExporterBuildError, Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tollgate::trace::opentelemetry::KeyValue;

use super::client::CollectorClient;
use super::connector::Connector;
use super::endpoint::Endpoint;
use super::queue::SpanReceiver;

/// The most spans in one export.
pub const MAX_BATCH: usize = 512;

/// The longest time for which a span waits until other spans fill its batch.
pub const BATCH_WAIT: Duration = Duration::from_secs(1);

/// The time limit for the last export at the end of the process.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The description of the process that exports the spans. Each export contains it as the
/// OpenTelemetry resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterIdentity {
    /// The name of the service under which the collector lists the spans.
    pub service: String,
    /// The version of the program.
    pub version: String,
    /// Further resource attributes, as keys and values of the OpenTelemetry conventions.
    pub attributes: Vec<(String, String)>,
}

impl ExporterIdentity {
    fn resource(&self) -> Resource {
        let own = [("service.name", &self.service), ("service.version", &self.version)];
        let own = own.map(|(key, value)| KeyValue::new(key, value.clone()));
        let others = self.attributes.iter().cloned().map(|(key, value)| KeyValue::new(key, value));
        Resource::builder_empty().with_attributes(others.chain(own)).build()
    }
}

/// The numbers of spans that were exported and that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Spans that a collector accepted.
    pub exported: u64,
    /// Spans that were dropped, because no collector could be reached or the collector rejected
    /// them.
    pub lost: u64,
    /// Spans that were dropped because the queue was full.
    pub dropped: u64,
}

/// The reason why an exporter cannot be created, for example an environment variable of
/// OpenTelemetry that selects an unsupported compression.
#[derive(Debug)]
pub struct ExporterError(ExporterBuildError);

impl fmt::Display for ExporterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the spans cannot be exported: {}", self.0)
    }
}

impl std::error::Error for ExporterError {}

/// An exporter that posts spans to a collector until it is [finished](Self::finish) or dropped.
pub struct Exporter {
    counts: Arc<Counts>,
    ending: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Starts to post the spans from `spans` to `endpoint` through `connector`, with `origin` as
    /// the OpenTelemetry resource. The function needs a tokio runtime with timers and I/O enabled.
    ///
    /// # Errors
    /// [`ExporterError`] if an environment variable of OpenTelemetry selects an unsupported
    /// setting.
    pub fn start(
        spans: SpanReceiver,
        endpoint: &Endpoint,
        connector: Connector,
        origin: &ExporterIdentity,
    ) -> Result<Self, ExporterError> {
        let (ending, ended) = watch::channel(false);
        let client = Arc::new(CollectorClient::new(connector, ended.clone()));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(endpoint.to_string())
            .with_protocol(Protocol::HttpBinary)
            .with_shared_http_client(Arc::clone(&client) as _)
            // `CollectorClient` sends failed batches again itself, and stops doing so when the
            // process ends.
            .with_retry_policy(RetryPolicy::disabled());
        let mut exporter = exporter.build().map_err(ExporterError)?;
        exporter.set_resource(&origin.resource());
        let counts = Arc::new(Counts::new(spans.dropped()));
        let export = Export {
            exporter,
            client,
            collector: endpoint.to_string(),
            counts: Arc::clone(&counts),
            state: ExportState::Healthy,
        };
        Ok(Self { counts, ending, task: tokio::spawn(export.run(spans, ended)) })
    }

    /// Returns a counter of exported and lost spans.
    #[must_use]
    pub fn counter(&self) -> ExportCounter {
        ExportCounter(Arc::clone(&self.counts))
    }

    /// Posts the spans that are still in the queue, with one attempt for each batch, within
    /// [`FLUSH_TIMEOUT`]. Then the exporter ends.
    pub async fn finish(mut self) {
        self.ending.send_replace(true);
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

/// A counter of exported and lost spans. The counter stays valid after the exporter has ended.
#[derive(Clone, Debug)]
pub struct ExportCounter(Arc<Counts>);

impl ExportCounter {
    /// Returns the counts so far.
    #[must_use]
    pub fn read(&self) -> ExportCounts {
        self.0.read()
    }
}

#[derive(Debug)]
struct Counts {
    exported: AtomicU64,
    lost: AtomicU64,
    dropped: Arc<AtomicU64>,
}

impl Counts {
    const fn new(dropped: Arc<AtomicU64>) -> Self {
        Self { exported: AtomicU64::new(0), lost: AtomicU64::new(0), dropped }
    }

    fn read(&self) -> ExportCounts {
        ExportCounts {
            exported: self.exported.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    fn add(&self, exported: u64, lost: u64) {
        self.exported.fetch_add(exported, Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }
}

/// Whether the collector accepted the last batch. A log line is written only when this state
/// changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportState {
    Healthy,
    Failing,
}

struct Export {
    exporter: SpanExporter,
    client: Arc<CollectorClient>,
    collector: String,
    counts: Arc<Counts>,
    state: ExportState,
}

impl Export {
    async fn run(mut self, mut spans: SpanReceiver, mut ended: watch::Receiver<bool>) {
        let mut batch = Vec::new();
        loop {
            let gathered = gather(&mut spans, &mut batch);
            tokio::select! {
                _ = ended.wait_for(|is_ending| *is_ending) => break,
                taken = gathered => if taken == 0 { return },
            }
            self.deliver(std::mem::take(&mut batch)).await;
        }
        spans.close();
        loop {
            while batch.len() < MAX_BATCH && spans.next(&mut batch, MAX_BATCH).await > 0 {}
            if batch.is_empty() {
                return;
            }
            self.deliver(std::mem::take(&mut batch)).await;
        }
    }

    async fn deliver(&mut self, batch: Vec<SpanData>) {
        let all = batch.len() as u64;
        match self.exporter.export(batch).await {
            Ok(()) => {
                let rejected = self.client.take_rejected().min(all);
                self.counts.add(all - rejected, rejected);
                self.log_state_change(ExportState::Healthy, "");
            }
            Err(error) => {
                self.counts.add(0, all);
                let why = self.client.take_failure().unwrap_or_else(|| error.to_string());
                self.log_state_change(ExportState::Failing, &why);
            }
        }
    }

    fn log_state_change(&mut self, state: ExportState, why: &str) {
        if state == self.state {
            return;
        }
        self.state = state;
        let collector = &self.collector;
        match state {
            ExportState::Healthy => tracing::info!(%collector, "the collector accepts spans again"),
            ExportState::Failing => {
                tracing::warn!(%collector, "cannot export spans, they are dropped: {why}");
            }
        }
    }
}

/// Waits for a first span, and then for more spans, until the batch is full or the first span has
/// waited for [`BATCH_WAIT`]. Returns the number of spans, which is 0 if no further span can come.
/// Cancel safe.
async fn gather(spans: &mut SpanReceiver, batch: &mut Vec<SpanData>) -> usize {
    let first = spans.next(batch, MAX_BATCH).await;
    let until = Instant::now() + BATCH_WAIT;
    while first > 0 && batch.len() < MAX_BATCH {
        let room = MAX_BATCH - batch.len();
        match timeout_at(until, spans.next(batch, room)).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
    }
    first
}
