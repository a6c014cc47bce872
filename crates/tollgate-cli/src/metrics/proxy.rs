//! Metrics of the client connections of `tollgate proxy`.

use tollgate_proxy::{CloseReason, ConnectionMetrics, UpstreamMetrics};
use tollgate_server::metrics::Exposition;

use super::families::{
    PROXY_CLOSED, UPSTREAM_FAILURES, UPSTREAM_IN_FLIGHT, UPSTREAM_REQUESTS, UPSTREAM_RETRIES,
    UPSTREAM_SET_ASIDE,
};

/// The name of the proxy's listener in the connection metrics.
const NAME: &str = "proxy";

/// The client connections of the proxy and their limit.
#[derive(Clone, Debug)]
pub(super) struct ProxyConnections {
    pub(super) metrics: ConnectionMetrics,
    pub(super) limit: u32,
}

impl ProxyConnections {
    /// Returns a sample of the open connections: the value of the label, and the number of
    /// connections.
    pub(super) fn open(&self) -> ([&'static str; 1], u32) {
        ([NAME], self.metrics.open())
    }

    /// Returns a sample of the limit of connections: the value of the label, and the limit.
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

/// Writes the state of the upstreams, in a process that is a proxy.
pub(super) fn write_upstreams(page: &mut Exposition, upstreams: Option<&UpstreamMetrics>) {
    let Some(upstreams) = upstreams else { return };
    let mut addresses = upstreams.addresses();
    // An upstream may serve several routes. The values of its routes are added up.
    addresses
        .sort_by(|one, other| (&one.upstream, one.address).cmp(&(&other.upstream, other.address)));
    addresses.dedup_by(|next, first| {
        let is_same = (&next.upstream, next.address) == (&first.upstream, first.address);
        if is_same {
            first.requests += next.requests;
            first.failures += next.failures;
            first.in_flight += next.in_flight;
            first.is_set_aside |= next.is_set_aside;
        }
        is_same
    });
    let labels: Vec<_> =
        addresses.iter().map(|one| [one.upstream.clone(), one.address.to_string()]).collect();
    let all = || labels.iter().cloned().zip(&addresses);
    page.family(&UPSTREAM_REQUESTS, all().map(|(labels, one)| (labels, one.requests)));
    page.family(&UPSTREAM_FAILURES, all().map(|(labels, one)| (labels, one.failures)));
    page.family(&UPSTREAM_IN_FLIGHT, all().map(|(labels, one)| (labels, one.in_flight)));
    let set_aside = all().map(|(labels, one)| (labels, u8::from(one.is_set_aside)));
    page.family(&UPSTREAM_SET_ASIDE, set_aside);
    let retries = upstreams.retries();
    let retries = [(["connect"], retries.connect), (["closed"], retries.closed)];
    page.family(&UPSTREAM_RETRIES, retries);
}
