use std::{
    convert::Infallible, error::Error as StdError, future::Future, io, net::SocketAddr, pin::pin,
    sync::Arc, time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, watch},
    time::{sleep, timeout},
};
use tollgate::tower::Peer;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Error, Forward, Settings,
    body::RequestBody,
    connection,
    connections::{AddressSlot, Connections},
    conversation::Conversation,
    session::{Phase, Session},
};

/// The most waiting clients that are still accepted at shutdown: the length of the system's backlog
/// for a tokio listener.
const BACKLOG: usize = 1_024;

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
    let connections = Connections::new(&settings);
    let (phase, watch) = watch::channel(Phase::Serving);
    let mut shutdown = pin!(shutdown);

    let (of_all, registry) = (Arc::clone(&settings), connections.clone());
    let begin = move |client: Client, permit: OwnedSemaphorePermit| {
        let Client { stream, peer, address } = client;
        prepare(&stream);
        let slot = registry.open(permit, address, Arc::new(Conversation::begin()));
        tokio::spawn(connection::serve(
            stream,
            Peer(peer),
            service.clone(),
            Arc::clone(&of_all),
            Session::new(watch.clone(), peer.ip(), slot),
        ));
    };
    let mut accepted = None;
    loop {
        tokio::select! {
            biased;
            () = shutdown.as_mut() => break,
            (client, permit) = next(&listener, &connections, &mut accepted) => begin(client, permit),
        }
    }
    let waiting = waiting(listener).filter_map(|next| Client::admit(next, &connections));
    for client in accepted.into_iter().chain(waiting) {
        let Some(permit) = connections.try_permit() else { break };
        begin(client, permit);
    }
    drain(&settings, &connections, &phase).await
}

/// A client that was accepted and counted against the limit of its address.
struct Client {
    stream: TcpStream,
    peer: SocketAddr,
    address: AddressSlot,
}

impl Client {
    /// Counts a client, or closes its connection if its address has too many.
    fn admit((stream, peer): (TcpStream, SocketAddr), connections: &Connections) -> Option<Self> {
        let address = connections.admit(peer.ip())?;
        Some(Self { stream, peer, address })
    }
}

/// Waits for the next client and a permit for it. If the wait is aborted, a client without a permit
/// stays in `accepted`. Further clients wait in the backlog, where they cost this process nothing.
async fn next(
    listener: &TcpListener,
    connections: &Connections,
    accepted: &mut Option<Client>,
) -> (Client, OwnedSemaphorePermit) {
    loop {
        if accepted.is_none() {
            *accepted = Client::admit(accept(listener).await, connections);
            continue;
        }
        let permit = connections.permit().await;
        if let Some(client) = accepted.take() {
            return (client, permit);
        }
    }
}

/// Sets socket options. An error means that the connection is closed already, which serving it
/// detects.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
}

/// Returns the clients that are waiting already, because closing the socket would reset their
/// connections. Their number is limited to the backlog, or a busy proxy would never stop. It polls
/// the system directly, because tokio's readiness is only updated once per turn.
fn waiting(listener: TcpListener) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
    let listener = listener.into_std();
    let next = move || {
        let (stream, peer) = listener.as_ref().ok()?.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(stream).ok()?, peer))
    };
    std::iter::from_fn(next).take(BACKLOG)
}

/// Waits until every connection is closed.
async fn drain(
    settings: &Settings,
    connections: &Connections,
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

/// Waits for the next client. Errors of `accept` are not returned: errors of a single connection
/// are skipped at once, and a lack of resources (file descriptors, memory) is retried after a
/// growing pause.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let mut pause = SHORTEST_PAUSE;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_clients_own(&error) => {}
            Err(_) => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

fn is_clients_own(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
