//! Accepts clients and serves each connection, until the proxy drains.

use std::{
    convert::Infallible, error::Error as StdError, future::Future, net::SocketAddr, pin::pin,
    sync::Arc, time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};
use tollgate::tower::{ClientCertificate, Peer, TlsClient};
use tollgate_http::{
    Accepted, Admission, CertificateNames, CloseReason, ConnectionMetrics, ConnectionRules,
    Connections, ControlFrames, Conversation, Phase, PollOnWake, ResponseExecutor, ResponseTasks,
    SectionLimits, Shutdown, Stream, StrictReader, StrictReaderTimeouts, accept,
};
use tower_layer::Layer;
use tower_service::Service;

use crate::body::RequestBody;
use crate::error::Error;
use crate::forward::Forward;
use crate::forwarded::Scheme;
use crate::handler::{ClientConnection, Handler};
use crate::session::Session;
use crate::settings::{Limits, Settings};

/// The largest number of response bytes that the kernel buffers for a client connection. Without
/// this bound the kernel would buffer megabytes, and the proxy could not distinguish a client that
/// reads slowly from a client that does not read.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 64 * 1_024;

/// The time after the start of the drain in which an idle client may still send a request. Such a
/// request may already be in transit, and an immediate close would lose it. Its response contains
/// `connection: close`.
const LAST_REQUEST: Duration = Duration::from_secs(1);
/// The longest time from the end of a connection's last request until the connection is closed.
const LINGER: Duration = Duration::from_secs(5);
/// The longest time for closing an idle client connection to make room for a new one.
const EVICTION_LINGER: Duration = Duration::from_millis(100);
/// The longest wait for the end of connections that were cut off at the end of the drain. Their ends
/// release the permits of their requests, and the caller may stop the runtime when [`run`] returns.
const CUT_TIMEOUT: Duration = Duration::from_secs(1);
/// The size of hyper's buffer for a request head. The strict reader has already limited the size of
/// the head, so this buffer only has to be large enough.
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// The largest number of request bytes that one HTTP/2 stream may send before the upstream has
/// accepted them. [`HTTP2_CONNECTION_WINDOW_BYTES`] is the corresponding limit for all streams of a
/// connection together.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Serves the clients of `listener` until `shutdown` resolves, then drains. While the proxy drains,
/// it accepts only clients that are already waiting, finishes each request in flight, and then
/// closes the connection of the request. An idle client may send one more request within a second,
/// because that request may already be in transit.
///
/// Each request passes through `layer`, with the client's address in its extensions as [`Peer`],
/// before the request is forwarded to the upstream. If the future that this function returns is
/// dropped, all connections are closed at once.
///
/// # Errors
///
/// Returns [`Error::DrainTimeout`] if requests were still in flight after `timeouts.drain`; their
/// connections are closed, and this function returns at most one second later. Returns any other
/// error at the start, because the settings are invalid. A failure of a client or of the upstream is
/// no error of this function, and is reported in the response.
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
        tokio::spawn(serve(
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

/// Returns the limits on client connections as [`ConnectionRules`]. The limit for each address does
/// not apply to the addresses of trusted proxies.
fn rules(settings: &Settings) -> ConnectionRules {
    let trusted_proxies = settings.trusted_proxies.clone();
    ConnectionRules {
        limit: settings.limits.connections,
        limit_per_address: settings.limits.connections_per_address,
        exempt: Box::new(move |address| trusted_proxies.contains(address)),
        keeps_one_free: false,
    }
}

/// Sets the socket options of a client connection. Errors are ignored, because an error means that
/// the connection is already closed, which the code that serves the connection detects.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
}

/// Waits until every client connection is closed, at most for `timeouts.drain`. Cuts off the
/// connections that are still open then, and returns an error.
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
    let _ = timeout(CUT_TIMEOUT, connections.all_closed()).await;
    Err(Error::DrainTimeout { connections: open, waited })
}

/// Serves one client until the client disconnects, the connection is idle for too long, or the
/// proxy shuts down.
///
/// Errors are not returned, because an error ends only the connection of its client.
async fn serve<S, B>(
    stream: TcpStream,
    peer: Peer,
    service: S,
    settings: Arc<Settings>,
    session: Session,
) where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let conversation = Arc::clone(session.conversation());
    let Some(stream) = handshake(stream, &settings, &session).await else {
        return conversation.leave();
    };
    let client = stream.peer_certificate().map(tls_client);
    let guarded = guard(stream, &settings, &conversation);
    let connection = ClientConnection {
        peer,
        client,
        settings: Arc::clone(&settings),
        conversation: Arc::clone(&conversation),
        session: session.clone(),
    };
    let handler = Handler { service, connection: Arc::new(connection) };
    let answer = service_fn(move |request: Request<Incoming>| handler.clone().answer(request));
    let protocols = protocols(&settings, &session);
    let mut connection =
        pin!(protocols.serve_connection_with_upgrades(TokioIo::new(guarded), answer));

    let draining = PollOnWake::new(session.reached(Phase::Draining));
    let idle = PollOnWake::new(conversation.idle_for(settings.timeouts.keep_alive_idle));
    let close_requested = PollOnWake::new(conversation.close_requested());
    let linger = tokio::select! {
        biased;
        _ = connection.as_mut() => return conversation.leave(),
        // If the phase is already `Cut`, the next wait returns at once.
        () = draining => tokio::select! {
            _ = connection.as_mut() => return conversation.leave(),
            // The time is at most half of the drain time. A connection without a request is then
            // closed before the drain time ends, and does not count as aborted.
            () = sleep(LAST_REQUEST.min(settings.timeouts.drain / 2)) => {
                conversation.note_close(CloseReason::Shutdown);
                LINGER
            }
        },
        () = idle => {
            conversation.note_close(CloseReason::Idle);
            LINGER
        }
        () = close_requested => EVICTION_LINGER,
    };
    conversation.leave();
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = connection => {}
        () = session.reached(Phase::Cut) => {}
        () = async {
            sleep(linger).await;
            conversation.idle_for(linger).await;
        } => {}
    }
}

/// Completes the TLS handshake of a client connection, or returns `stream` unchanged if clients
/// connect without TLS. Returns `None` if the handshake failed or took too long, or if the
/// connection was asked to close.
async fn handshake(stream: TcpStream, settings: &Settings, session: &Session) -> Option<Stream> {
    let Some(tls) = settings.tls.clone() else { return Some(Stream::Tcp(stream)) };
    let accepted = Accepted { stream: Stream::Tcp(stream), peer: None, tls: Some(tls) };
    let conversation = session.conversation();
    tokio::select! {
        finished = timeout(settings.timeouts.tls_handshake, accepted.handshake()) => match finished {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(_)) | Err(_) => {
                conversation.note_close(CloseReason::TlsHandshake);
                None
            }
        },
        () = conversation.close_requested() => None,
        () = session.reached(Phase::Cut) => None,
    }
}

fn tls_client(names: CertificateNames) -> TlsClient {
    let CertificateNames { subject, common_name, dns, uri, email } = names;
    TlsClient(Arc::new(ClientCertificate { subject, common_name, dns, uri, email }))
}

/// Returns `stream` with the checks that every client connection has: strict heads, bounds on
/// control frames, and time limits for slow clients.
fn guard(
    stream: Stream,
    settings: &Settings,
    conversation: &Arc<Conversation>,
) -> StrictReader<ControlFrames<Stream, Conversation>> {
    StrictReader::new(
        ControlFrames::new(stream, Arc::clone(conversation)),
        section_limits(&settings.limits),
        StrictReaderTimeouts {
            head: settings.timeouts.request_head,
            write: settings.timeouts.write_idle,
            rate: settings.least_rate(),
        },
        Arc::clone(conversation),
    )
}

fn section_limits(limits: &Limits) -> SectionLimits {
    SectionLimits {
        bytes: limits.header_bytes,
        fields: limits.header_fields,
        target_bytes: limits.target_bytes,
    }
}

fn protocols(
    settings: &Settings,
    session: &Session,
) -> auto::Builder<ResponseExecutor<impl Fn() + Clone + Send + 'static>> {
    let limits = &settings.limits;
    let session = session.clone();
    let mut builder = auto::Builder::new(ResponseExecutor::new(
        ResponseTasks::Own,
        settings.timeouts.write_idle,
        settings.least_rate(),
        move || session.count(CloseReason::SlowResponse),
    ));
    builder
        .http1()
        .timer(TokioTimer::new())
        // The strict reader has a time limit for heads, which excludes idle time.
        .header_read_timeout(None)
        .max_headers(limits.header_fields)
        .max_buf_size(limits.header_bytes.saturating_add(READ_BUFFER_BYTES));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams)
        .max_pending_accept_reset_streams(limits.http2_pending_resets)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(limits.http2_send_buffer_bytes);
    builder
}
