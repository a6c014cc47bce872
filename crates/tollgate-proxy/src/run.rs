use std::{
    convert::Infallible, error::Error as StdError, future::Future, io, net::SocketAddr, pin::pin,
    sync::Arc, time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tollgate::tower::Peer;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Error, Forward, Settings,
    body::RequestBody,
    connection,
    session::{Phase, Session},
};

/// How many of those that wait to be accepted when the proxy is told to end are served yet: as many as the system lets
/// wait at a listener of tokio's.
const BACKLOG: usize = 1_024;

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
    let places = Arc::new(Semaphore::new(settings.limits.connections as usize));
    let (phase, watch) = watch::channel(Phase::Serving);
    let mut shutdown = pin!(shutdown);

    let next = async || {
        // A place first: a client that has none waits in the backlog, and costs nothing here.
        let place = Arc::clone(&places).acquire_owned().await.ok()?;
        let (stream, peer) = accept(&listener).await;
        Some((stream, peer, place))
    };
    let of_all = Arc::clone(&settings);
    let begin = move |(stream, peer, place): (TcpStream, SocketAddr, OwnedSemaphorePermit)| {
        // Fails on a connection that is gone already, which serving it will find.
        let _ = stream.set_nodelay(true);
        tokio::spawn(connection::serve(
            stream,
            Peer(peer),
            service.clone(),
            Arc::clone(&of_all),
            Session::new(watch.clone(), peer.ip(), place),
        ));
    };
    loop {
        tokio::select! {
            biased;
            () = shutdown.as_mut() => break,
            next = next() => match next {
                Some(next) => begin(next),
                None => break,
            },
        }
    }
    for (stream, peer) in waiting(listener) {
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { break };
        begin((stream, peer, place));
    }
    drain(&settings, &places, &phase).await
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

/// Waits for every place to be free.
async fn drain(
    settings: &Settings,
    places: &Semaphore,
    phase: &watch::Sender<Phase>,
) -> Result<(), Error> {
    let (all, waited) = (settings.limits.connections, settings.timeouts.drain);
    phase.send_replace(Phase::Draining);
    if timeout(waited, places.acquire_many(all)).await.is_ok() {
        return Ok(());
    }
    let free = u32::try_from(places.available_permits()).unwrap_or(all);
    phase.send_replace(Phase::Cut);
    Err(Error::DrainTimeout { connections: all.saturating_sub(free), waited })
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
