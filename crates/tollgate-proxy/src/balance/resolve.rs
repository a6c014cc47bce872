//! The addresses of the host names of upstreams.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{net::lookup_host, time::timeout};

use crate::Upstream;

/// The most addresses of one host name that are used.
pub(super) const MAX_ADDRESSES: usize = 64;
/// The time after which the addresses of host names are looked up again.
pub(super) const RESOLVE_EVERY: Duration = Duration::from_secs(10);
/// The shortest time between two lookups, if an address cannot be reached.
pub(super) const RESOLVE_PAUSE: Duration = Duration::from_secs(1);

/// Returns the addresses of `upstream`, sorted.
pub(super) async fn resolve(upstream: &Upstream, limit: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Some(address) = upstream.socket_address() {
        return Ok(vec![address]);
    }
    let host = (upstream.host(), upstream.port());
    let found = timeout(limit, lookup_host(host)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    let mut addresses: Vec<SocketAddr> = found.collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.truncate(MAX_ADDRESSES);
    match addresses.is_empty() {
        true => Err(io::Error::other("the host name has no address")),
        false => Ok(addresses),
    }
}
