//! The HTTP client that posts batches of spans.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::watch;
use tokio::time::timeout;

use super::connector::{Connector, EXPORT_TIMEOUT};

/// The most attempts to send a batch to a collector that is busy or does not respond. After the
/// last attempt, the batch is dropped.
pub const EXPORT_ATTEMPTS: u32 = 4;

/// The pause before the second attempt. Each further pause is twice as long as the pause before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The most bytes of a response that are read.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Posts batches to a collector, counts the spans that the collector rejects, and keeps the last
/// failure.
#[derive(Debug)]
pub(super) struct CollectorClient {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Becomes true when the process ends. From then on, each batch is sent at most one more time,
    /// however few attempts were made before.
    ending: watch::Receiver<bool>,
    rejected: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl CollectorClient {
    pub(super) fn new(connector: Connector, ending: watch::Receiver<bool>) -> Self {
        let http = Client::builder(TokioExecutor::new()).build(connector.into_inner());
        Self { http, ending, rejected: AtomicU64::new(0), failure: Mutex::new(None) }
    }

    /// Returns the number of spans that the collector rejected in responses with a success status,
    /// and sets the number to 0.
    pub(super) fn take_rejected(&self) -> u64 {
        self.rejected.swap(0, Ordering::Relaxed)
    }

    /// Returns the reason why the last batch was not accepted, and forgets the reason. Returns
    /// `None` if no batch failed since the last call.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.failure.lock().take()
    }

    /// Sends `request`. If the collector is busy or does not respond, sends it again.
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, CollectorError> {
        repeat(self.ending.clone(), || self.send(request.clone())).await
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, CollectorError> {
        let answered = async {
            let answer = self.http.request(request.map(Full::new)).await;
            let (head, body) =
                answer.map_err(|error| CollectorError::silence(&error))?.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            match head.status {
                status if status.is_success() => {
                    let body = body.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
                    self.rejected.fetch_add(rejected(&body), Ordering::Relaxed);
                    Ok(Response::from_parts(head, body))
                }
                status => Err(CollectorError::status(status)),
            }
        };
        timeout(EXPORT_TIMEOUT, answered).await.unwrap_or_else(|_| Err(CollectorError::late()))
    }
}

impl HttpClient for CollectorClient {
    fn send_bytes<'client, 'sent>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sent>>
    where
        'client: 'sent,
        Self: 'sent,
    {
        Box::pin(async {
            self.deliver(request).await.map_err(|error| {
                *self.failure.lock() = Some(error.why);
                HttpError::from("the collector did not accept the spans")
            })
        })
    }
}

/// Calls `send` until it succeeds or returns a final error, up to [`EXPORT_ATTEMPTS`] times in
/// total. The pauses between the calls end when `ending` becomes true.
async fn repeat<T, F: Future<Output = Result<T, CollectorError>>>(
    mut ending: watch::Receiver<bool>,
    mut send: impl FnMut() -> F,
) -> Result<T, CollectorError> {
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        let is_last = attempt >= EXPORT_ATTEMPTS || *ending.borrow();
        match send().await {
            Ok(response) => return Ok(response),
            Err(error) if error.is_final || is_last => return Err(error),
            // The pause ends early when the process ends. An error means that the process has
            // ended already.
            Err(_) => drop(timeout(pause, ending.wait_for(|is_ending| *is_ending)).await),
        }
        attempt += 1;
        pause *= 2;
    }
}

/// Returns how many spans a collector rejected.
fn rejected(answer: &[u8]) -> u64 {
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    let rejected = answer.partial_success.unwrap_or_default().rejected_spans;
    u64::try_from(rejected).unwrap_or_default()
}

/// The reason why a collector did not accept a batch.
struct CollectorError {
    why: String,
    /// Whether a further attempt would fail in the same way.
    is_final: bool,
}

impl CollectorError {
    fn late() -> Self {
        Self { why: "the collector did not respond".to_owned(), is_final: false }
    }

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

#[cfg(test)]
mod tests {
    use std::future::ready;

    use tokio::time::Instant;

    use super::*;

    /// Returns the times of the attempts to send a batch to a collector that always responds with
    /// `status`. The process ends at the time `ends_at`.
    async fn attempts(status: StatusCode, ends_at: Duration) -> Vec<u128> {
        let ((end, ending), begun) = (watch::channel(false), Instant::now());
        let mut times = Vec::new();
        let sent = repeat(ending, || {
            times.push(begun.elapsed().as_millis());
            ready(Err::<(), _>(CollectorError::status(status)))
        });
        let ends = async {
            tokio::time::sleep(ends_at).await;
            end.send_replace(true);
        };
        assert!(tokio::join!(sent, ends).0.is_err());
        times
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_collector_gets_four_attempts_with_growing_pauses() {
        let (busy, never) = (StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(60));
        assert_eq!(attempts(busy, never).await, [0, 500, 1_500, 3_500]);
        assert_eq!(attempts(StatusCode::BAD_REQUEST, never).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_end_of_the_process_one_more_attempt_is_made_at_once() {
        let busy = StatusCode::SERVICE_UNAVAILABLE;
        assert_eq!(attempts(busy, Duration::from_millis(700)).await, [0, 500, 700]);
    }
}
