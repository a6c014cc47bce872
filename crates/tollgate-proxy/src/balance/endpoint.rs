//! One address of an upstream: its connections, its load and its health.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use tokio::time::Instant;

use super::health::Health;
use crate::connect::Connector;
use crate::in_flight::InFlight;
use crate::pool::Pool;
use crate::settings::Settings;
use crate::upstream::Upstream;
use crate::upstream_metrics::UpstreamStatus;

/// One address of an upstream, with the pool of its connections, its load and its health.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) upstream: Upstream,
    pub(super) address: SocketAddr,
    pub(super) pool: Arc<Pool>,
    pub(super) in_flight: InFlight,
    health: Health,
    requests: AtomicU64,
    failures: AtomicU64,
}

impl Endpoint {
    pub(super) fn new(upstream: &Upstream, address: SocketAddr, settings: &Settings) -> Self {
        let connector = Connector::new(upstream, address, settings);
        Self {
            upstream: upstream.clone(),
            address,
            pool: Arc::new(Pool::new(connector, settings)),
            in_flight: InFlight::default(),
            health: Health::new(Instant::now()),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    pub(super) fn is_in_use(&self, now: Instant) -> bool {
        self.health.is_in_use(now)
    }

    /// Adds one to the number of requests that were sent to the address.
    pub(super) fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the address responded, so its earlier failures no longer count.
    pub(super) fn succeed(&self) {
        if self.health.succeed() {
            let (upstream, address) = (&self.upstream, self.address);
            tracing::info!(%upstream, %address, "the upstream address responds again");
        }
    }

    /// Records a failure of the address. After several failures in a row, the address is set aside,
    /// which means that it receives no requests for a while. The router passes `false` as
    /// `may_pause` if no other address of the group is in use. The address is then not set aside.
    pub(super) fn fail(&self, may_pause: bool) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if let Some(pause) = self.health.fail(Instant::now(), may_pause) {
            self.warn(pause);
        }
    }

    fn warn(&self, pause: Duration) {
        let (upstream, address, seconds) = (&self.upstream, self.address, pause.as_secs());
        tracing::warn!(
            %upstream, %address, seconds,
            "the upstream address failed several times in a row and is set aside"
        );
    }

    pub(super) fn status(&self, now: Instant) -> UpstreamStatus {
        UpstreamStatus {
            upstream: self.upstream.to_string(),
            address: self.address,
            in_flight: self.in_flight.count(),
            requests: self.requests.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            is_set_aside: !self.is_in_use(now),
        }
    }
}

/// Returns whether a response means that the server behind the address cannot serve requests.
pub(super) fn is_failure(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}
