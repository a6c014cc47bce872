//! Counters of a proxy's client connections.

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

use crate::{
    close_reason::CloseReason, connections::ConnectionObserver, conversation::Conversation,
};

/// The shortest time between two log lines with the same warning about client connections.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Counts the client connections of a proxy. Clones share the same counters.
///
/// ```
/// use tollgate_http::ConnectionMetrics;
///
/// assert_eq!(ConnectionMetrics::default().open(), 0);
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

/// The last logged warning for one [`CloseReason`], and the connections that were closed for this
/// reason since then.
#[derive(Debug, Clone, Copy, Default)]
struct Warning {
    logged_at: Option<Instant>,
    /// The number of connections that were closed for the reason of this warning since `logged_at`.
    closed: u64,
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

    /// Counts `reason` for an event that does not end an open connection: a refused connection, or
    /// a reset stream. `peer` is the client's address, for the log.
    pub fn count(&self, reason: CloseReason, peer: Option<IpAddr>) {
        self.0.closed[reason as usize].fetch_add(1, Ordering::Relaxed);
        let (Some(text), Some(peer)) = (reason.warning(), peer) else { return };
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
}

impl ConnectionObserver<Conversation> for ConnectionMetrics {
    fn opened(&self) {
        self.0.open.fetch_add(1, Ordering::Relaxed);
    }

    fn closed(&self, conversation: &Conversation, peer: Option<IpAddr>) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.count(conversation.close_reason(), peer);
    }

    fn address_limit_reached(&self, peer: IpAddr) {
        self.count(CloseReason::AddressLimit, Some(peer));
    }

    fn all_in_use(&self, limit: u32) {
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
        let peer = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        for (times, reason) in CloseReason::ALL.into_iter().enumerate() {
            for _ in 0..times {
                let conversation = Conversation::begin();
                conversation.note_close(reason);
                metrics.opened();
                ConnectionObserver::closed(&metrics, &conversation, peer);
            }
        }
        for (times, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(metrics.closed(reason), times as u64, "{reason:?}");
        }
        assert_eq!(metrics.open(), 0);
    }
}
