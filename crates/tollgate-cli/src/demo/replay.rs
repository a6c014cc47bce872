//! The client of the demo: sends the requests of a log in their order at a given pace.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::header::IF_NONE_MATCH;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;
use tollgate::model::Timestamp;

use super::clock::DemoClock;
use super::upstream::entity_tag;

/// One request of the log.
#[derive(Clone, Debug)]
pub(crate) struct ReplayedRequest {
    pub(crate) at: Timestamp,
    pub(crate) client: IpAddr,
    pub(crate) method: Method,
    /// The path and the query.
    pub(crate) target: String,
    /// Whether the client already had the page, so the request is sent with the page's entity tag.
    pub(crate) is_conditional: bool,
}

/// The results of the requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// Requests that were admitted, answered with 304, and therefore refunded.
    pub(crate) refunded: u64,
    /// Requests that were neither admitted nor refused: the proxy or the service failed.
    pub(crate) failed: u64,
    pub(crate) refused_by_client: BTreeMap<IpAddr, u64>,
}

impl Counts {
    fn count(&mut self, client: IpAddr, status: Option<StatusCode>) {
        self.sent += 1;
        match status {
            Some(StatusCode::TOO_MANY_REQUESTS) => {
                self.refused += 1;
                *self.refused_by_client.entry(client).or_default() += 1;
            }
            Some(StatusCode::NOT_MODIFIED) => {
                self.admitted += 1;
                self.refunded += 1;
            }
            Some(status) if !status.is_server_error() => self.admitted += 1,
            _ => self.failed += 1,
        }
    }
}

/// Sends `log` to `proxy` over real sockets within about `duration`, one request after another.
///
/// The client in the log is sent in the field `x-forwarded-for`. The demo's proxy trusts this field
/// in requests from this machine. `progress` is called for every response.
pub(crate) async fn replay(
    log: &[ReplayedRequest],
    proxy: SocketAddr,
    clock: &DemoClock,
    duration: Duration,
    mut progress: impl FnMut(&Counts, Timestamp),
) -> Counts {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut counts = Counts::default();
    let begin = Instant::now();
    let first = log.first().map_or(Timestamp::EPOCH, |request| request.at);
    let span = log.last().map_or(1, |request| request.at.since(first).get()).max(1);
    for request in log {
        let share = Duration::from_millis(request.at.since(first).get());
        tokio::time::sleep_until(begin + scaled(share, duration, span)).await;
        clock.show(request.at);
        let status = send(&client, proxy, request).await;
        counts.count(request.client, status);
        progress(&counts, request.at);
    }
    clock.end_replay();
    counts
}

/// Returns the share of `duration` that corresponds to `passed` of `span` milliseconds.
fn scaled(passed: Duration, duration: Duration, span: u64) -> Duration {
    let micros = passed.as_millis() * duration.as_micros() / u128::from(span);
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// Returns the status of the response, or `None` if the response was incomplete.
async fn send(
    client: &Client<HttpConnector, Empty<Bytes>>,
    proxy: SocketAddr,
    replayed: &ReplayedRequest,
) -> Option<StatusCode> {
    let uri = Uri::builder().scheme("http").authority(proxy.to_string());
    let uri = uri.path_and_query(replayed.target.as_str()).build().ok()?;
    let mut request = Request::builder().method(replayed.method.clone());
    request = request.header("x-forwarded-for", replayed.client.to_string());
    if replayed.is_conditional {
        request = request.header(IF_NONE_MATCH, entity_tag(uri.path()));
    }
    let response = client.request(request.uri(uri).body(Empty::new()).ok()?).await.ok()?;
    let status = response.status();
    response.into_body().collect().await.ok()?;
    Some(status)
}
