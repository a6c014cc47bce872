//! The addresses of the host names of upstreams.

use std::{fmt, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use tokio::{net::lookup_host, time::timeout};

use crate::upstream::Upstream;

/// The largest number of addresses that are used for one host name.
const MAX_ADDRESSES: usize = 64;

type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;
type LookUp = dyn Fn(&str, u16) -> Found + Send + Sync;

/// Looks up the addresses of the host names of upstreams. The default is the system's resolver.
///
/// While requests use a name, the name is looked up again after 10 seconds, or after one second if
/// one of its addresses could not be reached. At most 64 addresses of a name are used. A lookup
/// that fails leaves the known addresses in use.
#[derive(Clone, Default)]
pub struct Resolver(Option<Arc<LookUp>>);

impl Resolver {
    /// Creates a resolver that calls `look_up` with a host name and a port. The result of `look_up`
    /// must contain the addresses of the name, each with that port. `look_up` needs no time limit
    /// of its own, because [`Timeouts::connect`](crate::Timeouts::connect) applies.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::net::{Ipv4Addr, SocketAddr};
    /// use tollgate_proxy::{Resolver, Settings};
    ///
    /// # fn main() -> Result<(), tollgate_proxy::UpstreamError> {
    /// let mut settings = Settings::new("http://backend.internal:9000".parse()?);
    /// settings.resolver = Resolver::new(|_host, port| async move {
    ///     Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))])
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn new<F, A>(look_up: F) -> Self
    where
        F: Fn(&str, u16) -> A + Send + Sync + 'static,
        A: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        Self(Some(Arc::new(move |host, port| Box::pin(look_up(host, port)))))
    }

    /// Returns the sorted addresses of `upstream`. Fails if the lookup takes longer than `limit`.
    pub(crate) async fn resolve(
        &self,
        upstream: &Upstream,
        limit: Duration,
    ) -> io::Result<Vec<SocketAddr>> {
        if let Some(address) = upstream.socket_address() {
            return Ok(vec![address]);
        }
        let found = timeout(limit, self.look_up(upstream.host(), upstream.port()));
        let mut addresses = found.await.map_err(|_| io::ErrorKind::TimedOut)??;
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(MAX_ADDRESSES);
        match addresses.is_empty() {
            true => Err(io::Error::other("the host name has no address")),
            false => Ok(addresses),
        }
    }

    async fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match &self.0 {
            Some(look_up) => look_up(host, port).await,
            None => Ok(lookup_host((host, port)).await?.collect()),
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resolver").field(&self.0.is_some()).finish()
    }
}
