//! Metrics of the client connections of `tollgate proxy`.

use tollgate_proxy::{CloseReason, ConnectionMetrics};
use tollgate_server::metrics::Exposition;

use super::families::PROXY_CLOSED;

/// The name of the proxy's listener in the connection metrics.
const NAME: &str = "proxy";

/// The client connections of the proxy and their limit.
#[derive(Clone, Debug)]
pub(super) struct ProxyConnections {
    pub(super) metrics: ConnectionMetrics,
    pub(super) limit: u32,
}

impl ProxyConnections {
    /// The number of open connections, with its label.
    pub(super) fn open(&self) -> ([&'static str; 1], u32) {
        ([NAME], self.metrics.open())
    }

    /// The most connections at once, with its label.
    pub(super) fn limit(&self) -> ([&'static str; 1], u32) {
        ([NAME], self.limit)
    }
}

/// Writes the reasons for closed connections, in a process that is a proxy.
pub(super) fn write(page: &mut Exposition, proxy: Option<&ProxyConnections>) {
    let Some(ProxyConnections { metrics, .. }) = proxy else { return };
    let closed = CloseReason::ALL.map(|reason| ([reason.name()], metrics.closed(reason)));
    page.family(&PROXY_CLOSED, closed);
}
