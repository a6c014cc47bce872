use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{net::TcpStream, time::timeout};
use tollgate_http::{ClientTls, ServerName, Stream, handshake_hint};

use crate::counted_reads::CountedReads;
use crate::failure::UpstreamFailure;
use crate::settings::Settings;
use crate::upstream::Upstream;
use crate::upstream_link::UpstreamIo;

/// The shortest time between two log lines about failed TLS handshakes.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// A connector, which opens connections to one address of an upstream, each within a time limit.
#[derive(Debug)]
pub(crate) struct Connector {
    address: SocketAddr,
    tls: Option<TlsName>,
    limit: Duration,
    warned_at: Mutex<Option<Instant>>,
}

/// The TLS settings of a connection, and the name for which the server's certificate must be valid.
#[derive(Debug)]
struct TlsName {
    tls: ClientTls,
    name: ServerName<'static>,
}

impl Connector {
    pub(crate) fn new(upstream: &Upstream, address: SocketAddr, settings: &Settings) -> Self {
        let name = || ServerName::try_from(upstream.host().to_owned()).ok();
        let tls = settings.upstream_tls.clone().filter(|_| upstream.is_https());
        let tls = tls.and_then(|tls| Some(TlsName { tls, name: name()? }));
        let limit = settings.timeouts.connect;
        Self { address, tls, limit, warned_at: Mutex::default() }
    }

    /// Opens a connection to the address. With TLS, the server's certificate is verified before any
    /// byte of a request is sent.
    pub(crate) async fn connect(&self) -> Result<TokioIo<UpstreamIo>, UpstreamFailure> {
        let connecting = async {
            let stream = TcpStream::connect(self.address)
                .await
                .map_err(|error| UpstreamFailure::to_connect(&error))?;
            // An error means that the connection is already closed. The next use of the connection
            // detects that.
            let _ = stream.set_nodelay(true);
            let Some(TlsName { tls, name }) = &self.tls else { return Ok(Stream::Tcp(stream)) };
            let handshake = Stream::over_tls(stream, tls, name.clone());
            handshake.await.map_err(|error| self.untrusted(name, &error))
        };
        match timeout(self.limit, connecting).await {
            Ok(connected) => connected.map(|stream| TokioIo::new(CountedReads::new(stream))),
            Err(_) => Err(UpstreamFailure::ConnectTimeout),
        }
    }

    fn untrusted(&self, name: &ServerName<'_>, error: &io::Error) -> UpstreamFailure {
        let mut warned_at = self.warned_at.lock();
        if warned_at.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            *warned_at = Some(Instant::now());
            let (name, address) = (name.to_str(), self.address);
            let hint = handshake_hint(error);
            tracing::warn!(%name, %address, %error, hint, "the TLS handshake with the upstream failed");
        }
        UpstreamFailure::Handshake
    }
}
