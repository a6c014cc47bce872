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

/// How many of those that wait to be accepted when the proxy is told to end are served yet: as many as the system lets
/// wait at a listener of tokio's.
const BACKLOG: usize = 1_024;

/// How many bytes the system holds that were not sent to a client yet. Without this bound it holds megabytes, and a
/// client that reads them slowly looks like one that reads nothing.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 64 * 1_024;

/// Serves the clients of `listener` until `shutdown` resolves, then drains: nobody new is accepted but who waits there
/// already, each request in flight is finished, and its connection closed after it. A silent client may ask once more
/// within a second, for its request may be on the way.
///
/// Each request passes through `layer`, with the client's address in its extensions as [`Peer`], before it is
/// forwarded to the upstream. Dropping the future cuts every connection off.
///
/// # Errors
///
/// [`Error::DrainTimeout`] where requests were still in flight after `timeouts.drain`; those are cut off. Any other
/// error tells at once of settings that cannot work. Trouble with a client or with the upstream is none: those are
/// told by responses.
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

/// A client that was accepted, and counts against the limit of its address.
struct Client {
    stream: TcpStream,
    peer: SocketAddr,
    address: AddressSlot,
}

impl Client {
    /// Closes the connection if its address has too many.
    fn admit((stream, peer): (TcpStream, SocketAddr), connections: &Connections) -> Option<Self> {
        let address = connections.admit(peer.ip())?;
        Some(Self { stream, peer, address })
    }
}

/// Waits for the next client and a permit for it. A client that waits for its permit stays in `accepted`, should the
/// wait be broken off. The others wait in the backlog, where they cost nothing here.
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

/// Sets a client's socket up. Errors mean that the connection is gone, which serving it will find.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
}

/// Those that have come already: the end of the socket would cut them off. No more than wait at one time, or a busy
/// proxy would never end. The system itself is asked: what tokio knows of the socket is as old as its last turn.
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

/// Waits for the next client. Errors of accepting pass: the client's own leave at once, and what the system lacks
/// (descriptors, memory) may come back after a growing pause.
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
