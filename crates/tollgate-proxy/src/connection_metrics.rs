use std::{
    fmt,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The shortest time between two log lines with the same warning about client connections.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Counts the client connections of a proxy. Clones share the same counters.
///
/// ```
/// use tollgate_proxy::Settings;
///
/// let settings = Settings::new("http://127.0.0.1:9000".parse()?);
/// let metrics = settings.connection_metrics.clone();
/// assert_eq!(metrics.open(), 0);
/// # Ok::<_, tollgate_proxy::UpstreamError>(())
/// ```
#[derive(Clone, Default)]
pub struct ConnectionMetrics(Arc<Counters>);

#[derive(Default)]
struct Counters {
    open: AtomicU32,
    closed: [AtomicU64; CloseReason::ALL.len()],
    warnings: Mutex<[Warning; CloseReason::ALL.len()]>,
    full_warned_at: Mutex<Option<Instant>>,
}

/// The last warning about connections that were closed for one reason.
#[derive(Debug, Clone, Copy, Default)]
struct Warning {
    logged_at: Option<Instant>,
    /// Connections that were closed since then.
    closed: u64,
}

/// The reason why a client connection was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The client closed it, or asked for one response only.
    Client,
    /// It had no request for [`keep_alive_idle`](crate::Timeouts::keep_alive_idle).
    Idle,
    /// It was idle, or its request head was incomplete, while the proxy had no free connection.
    Evicted,
    /// Its address had [`connections_per_address`](crate::Limits::connections_per_address) already.
    AddressLimit,
    /// The request head did not arrive within [`request_head`](crate::Timeouts::request_head).
    SlowHead,
    /// The request body stalled or arrived too slowly.
    SlowRequest,
    /// The client stopped reading a response or read it too slowly. Over HTTP/2 the proxy resets the stream only.
    SlowResponse,
    /// A request was refused while the proxy was nearly full.
    Refused,
    /// The client sent too many HTTP/2 frames that are not requests.
    ControlFrames,
    /// A request was malformed, or its body too large.
    Malformed,
    /// The proxy is shutting down.
    Shutdown,
}

impl CloseReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 11] = [
        Self::Client,
        Self::Idle,
        Self::Evicted,
        Self::AddressLimit,
        Self::SlowHead,
        Self::SlowRequest,
        Self::SlowResponse,
        Self::Refused,
        Self::ControlFrames,
        Self::Malformed,
        Self::Shutdown,
    ];

    /// Returns the name for metrics and log lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Idle => "idle",
            Self::Evicted => "evicted",
            Self::AddressLimit => "address_limit",
            Self::SlowHead => "slow_head",
            Self::SlowRequest => "slow_request",
            Self::SlowResponse => "slow_response",
            Self::Refused => "refused",
            Self::ControlFrames => "control_frames",
            Self::Malformed => "malformed",
            Self::Shutdown => "shutdown",
        }
    }

    /// Returns the text of the warning, for reasons that may be an attack.
    const fn warning(self) -> Option<&'static str> {
        match self {
            Self::AddressLimit => Some(
                "closed new connections: their address has reached max-connections-per-address; \
                 name it in trusted_proxies if it is a proxy",
            ),
            Self::Evicted => Some("closed idle connections: all client connections are in use"),
            Self::SlowHead => Some("closed connections: the request head did not arrive in time"),
            Self::SlowRequest => Some("closed connections: the request body arrived too slowly"),
            Self::SlowResponse => Some("closed connections: the client reads too slowly"),
            Self::Refused => Some("closed connections after a refusal: the proxy is nearly full"),
            Self::ControlFrames => Some("closed connections: too many HTTP/2 control frames"),
            Self::Client | Self::Idle | Self::Malformed | Self::Shutdown => None,
        }
    }
}

impl ConnectionMetrics {
    /// Returns the number of open client connections.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Returns the number of client connections that were closed for `reason`.
    #[must_use]
    pub fn closed(&self, reason: CloseReason) -> u64 {
        self.0.closed[reason as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn count_open(&self) {
        self.0.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of an open connection.
    pub(crate) fn count_closed(&self, reason: CloseReason, peer: IpAddr) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.count(reason, peer);
    }

    /// Counts an event that does not end an open connection: a refused connection, or a reset
    /// stream.
    pub(crate) fn count(&self, reason: CloseReason, peer: IpAddr) {
        self.0.closed[reason as usize].fetch_add(1, Ordering::Relaxed);
        let Some(text) = reason.warning() else { return };
        let closed = {
            let warning = &mut self.0.warnings.lock()[reason as usize];
            warning.closed += 1;
            if warning.logged_at.is_some_and(|at| at.elapsed() < WARN_EVERY) {
                return;
            }
            warning.logged_at = Some(Instant::now());
            std::mem::take(&mut warning.closed)
        };
        tracing::warn!(reason = reason.name(), closed, last_address = %peer, "{text}");
    }

    /// Logs a warning that all connections are in use.
    pub(crate) fn warn_full(&self, limit: u32) {
        let mut warned_at = self.0.full_warned_at.lock();
        if warned_at.is_some_and(|at| at.elapsed() < WARN_EVERY) {
            return;
        }
        *warned_at = Some(Instant::now());
        tracing::warn!(
            "all {limit} client connections are in use: the proxy closes those that are idle for \
             longest, and new clients wait if none is idle; raise max-connections if this is normal load"
        );
    }
}

impl fmt::Debug for ConnectionMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionMetrics").field("open", &self.open()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        let metrics = ConnectionMetrics::default();
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for (times, reason) in CloseReason::ALL.into_iter().enumerate() {
            for _ in 0..times {
                metrics.count_open();
                metrics.count_closed(reason, peer);
            }
        }
        for (times, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(metrics.closed(reason), times as u64, "{reason:?}");
        }
        assert_eq!(metrics.open(), 0);
    }
}
