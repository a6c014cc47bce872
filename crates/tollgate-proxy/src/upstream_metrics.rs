//! The state of the upstreams, for metrics.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The state of a proxy's upstreams. Clones share the state.
///
/// ```
/// use tollgate_proxy::UpstreamMetrics;
///
/// assert!(UpstreamMetrics::default().addresses().is_empty());
/// ```
#[derive(Clone, Default)]
pub struct UpstreamMetrics(Arc<Shared>);

#[derive(Default)]
struct Shared {
    groups: Mutex<Vec<Weak<dyn Addresses>>>,
    connect: AtomicU64,
    closed: AtomicU64,
}

/// A group of servers that serve the same requests, whose addresses are reported in metrics.
pub(crate) trait Addresses: Send + Sync {
    /// Returns the state of each address at `now`.
    fn statuses(&self, now: Instant) -> Vec<UpstreamStatus>;
}

/// The state of one address of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// The upstream as it was configured, such as `http://api.internal:8080`.
    pub upstream: String,
    /// The address of the server.
    pub address: SocketAddr,
    /// The number of requests in flight: requests without a complete response.
    pub in_flight: u32,
    /// The number of requests that were sent to the address so far.
    pub requests: u64,
    /// The number of failures so far. A failure is an address that could not be reached, a missing
    /// response, or a response with 502, 503 or 504.
    pub failures: u64,
    /// Whether the address receives no requests at present, because it failed several times in a
    /// row.
    pub is_set_aside: bool,
}

/// The number of requests that were sent to an upstream again, counted separately for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryCounts {
    /// The number of requests that were sent to another address, because the first address could
    /// not be reached.
    pub connect: u64,
    /// The number of requests that were sent again over a new connection, because the upstream
    /// closed a pooled connection before it answered.
    pub closed: u64,
}

/// The reason why a request is sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retry {
    Connect,
    Closed,
}

impl UpstreamMetrics {
    /// Returns the state of every address of every upstream.
    #[must_use]
    pub fn addresses(&self) -> Vec<UpstreamStatus> {
        let now = Instant::now();
        let groups: Vec<_> = self.0.groups.lock().iter().filter_map(Weak::upgrade).collect();
        groups.iter().flat_map(|group| group.statuses(now)).collect()
    }

    /// Returns how many requests were sent again, for each reason.
    #[must_use]
    pub fn retries(&self) -> RetryCounts {
        RetryCounts {
            connect: self.0.connect.load(Ordering::Relaxed),
            closed: self.0.closed.load(Ordering::Relaxed),
        }
    }

    /// Adds a group of servers. The group is reported until the last `Arc` of it is dropped.
    pub(crate) fn add<A: Addresses + 'static>(&self, group: &Arc<A>) {
        let group: Arc<dyn Addresses> = Arc::clone(group) as _;
        self.0.groups.lock().push(Arc::downgrade(&group));
    }

    /// Counts a request that is sent again.
    pub(crate) fn count(&self, retry: Retry) {
        let counter = match retry {
            Retry::Connect => &self.0.connect,
            Retry::Closed => &self.0.closed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for UpstreamMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamMetrics").field("retries", &self.retries()).finish_non_exhaustive()
    }
}
