use std::{
    convert::Infallible, error::Error as StdError, future::Future, net::SocketAddr, sync::Arc,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tollgate::tower::Peer;
use tollgate_http::{
    Admission, ConnectionMetrics, ConnectionRules, Connections, Conversation, Phase, Shutdown,
    accept,
};
use tower_layer::Layer;
use tower_service::Service;

use crate::body::RequestBody;
use crate::connection;
use crate::error::Error;
use crate::forward::Forward;
use crate::forwarded::Scheme;
use crate::session::Session;
use crate::settings::Settings;

/// The most bytes that the system buffers for a client. Without this bound it would buffer
/// megabytes, and a client that reads slowly would look like one that does not read.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 64 * 1_024;

/// Serves the clients of `listener` until `shutdown` resolves, then drains: only clients that are
/// waiting already are accepted, each request in flight is finished, and its connection is closed
/// after it. An idle client may send one more request within a second, because it may already be in
/// transit.
///
/// Each request passes through `layer`, with the client's address in its extensions as [`Peer`],
/// before it is forwarded to the upstream. Dropping the future closes all connections at once.
///
/// # Errors
///
/// [`Error::DrainTimeout`] if requests were still in flight after `timeouts.drain`; their
/// connections are closed. Any other error is returned at the start, for invalid settings. Failures
/// of clients or of the upstream are not errors: they are reported by responses.
pub async fn run<L, S, B>(
    listener: TcpListener,
    settings: Settings,
    layer: L,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error>
where
    L: Layer<Forward, Service = S>,
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    settings.check()?;
    let settings = Arc::new(settings);
    let service = layer.layer(Forward::new(Arc::clone(&settings)));
    let connections = Connections::new(rules(&settings), settings.connection_metrics.clone());
    let (phase, watch) = Shutdown::new();
    let of_all = Arc::clone(&settings);
    let begin = move |(stream, peer): (TcpStream, SocketAddr), admission: Admission<_, _>| {
        prepare(&stream);
        let slot = admission.open(Arc::new(Conversation::begin()));
        let scheme = if of_all.tls.is_some() { Scheme::Https } else { Scheme::Http };
        tokio::spawn(connection::serve(
            stream,
            Peer(peer),
            service.clone(),
            Arc::clone(&of_all),
            Session::new(watch.clone(), peer.ip(), scheme, slot),
        ));
    };
    accept(listener, &connections, shutdown, begin).await;
    drain(&settings, &connections, &phase).await
}

/// Returns the limits of connections. Trusted proxies have none of their own.
fn rules(settings: &Settings) -> ConnectionRules {
    let trusted_proxies = settings.trusted_proxies.clone();
    ConnectionRules {
        limit: settings.limits.connections,
        limit_per_address: settings.limits.connections_per_address,
        exempt: Box::new(move |address| {
            trusted_proxies.load().iter().any(|network| network.contains(address))
        }),
        keeps_one_free: false,
    }
}

/// Sets socket options. An error means that the connection is closed already, which serving it
/// detects.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
}

/// Waits until every connection is closed.
async fn drain(
    settings: &Settings,
    connections: &Connections<Conversation, ConnectionMetrics>,
    phase: &watch::Sender<Phase>,
) -> Result<(), Error> {
    let waited = settings.timeouts.drain;
    phase.send_replace(Phase::Draining);
    if timeout(waited, connections.all_closed()).await.is_ok() {
        return Ok(());
    }
    let open = connections.in_use();
    phase.send_replace(Phase::Cut);
    Err(Error::DrainTimeout { connections: open, waited })
}
