use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tollgate::tower::{Peer, TlsClient};
use tollgate_http::{
    CloseReason, Conversation, LeastRate, MAX_FRAME, UpgradeAnswer, Violation, is_host, note,
    same_host,
};
use tower_service::Service;

use crate::body::{RequestBody, read_json};
use crate::default_host::add_default_host;
use crate::problem::Problem;
use crate::rejected::Rejected;
use crate::session::Session;
use crate::settings::{Limits, Settings};
use crate::upgrade_prep::prepare_upgrade;
use crate::upload::{Upload, UploadFault};

/// The service for all requests of one client connection. It refuses requests that break a rule of
/// HTTP or exceed a limit of the proxy. It passes all other requests, with the peer's address, to
/// `service`, which contains the rate limiting layer.
#[derive(Debug, Clone)]
pub(crate) struct Handler<S> {
    pub(crate) service: S,
    pub(crate) connection: Arc<ClientConnection>,
}

/// The client connection of a handler.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    pub(crate) peer: Peer,
    /// The client's certificate, if the client presented one.
    pub(crate) client: Option<TlsClient>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) session: Session,
}

/// The body of a response to the client: either the body that `service` returned, or problem
/// details that the handler created.
pub(crate) type HandlerBody<B> = Either<CountedBody<B>, Full<Bytes>>;

impl<S, B> Handler<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes>,
{
    /// Returns the response to `request`. The function is a single future, because each nested
    /// future would contain the request again.
    pub(crate) async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<HandlerBody<B>>, Infallible> {
        let Self { mut service, connection } = self;
        let ClientConnection { peer, client, settings, conversation, session } = &*connection;
        let peer = *peer;
        let version = request.version();
        if version != Version::HTTP_2
            && let Some(violation) = conversation.next_request()
        {
            return Ok(rejected(violation.into(), version, peer, settings));
        }
        let exchange = ExchangeGuard::begin(conversation);
        let is_upgrade_request =
            version == Version::HTTP_11 && request.headers().contains_key(header::UPGRADE);
        let answer = match admit(&request, &settings.limits) {
            Err(problem) => rejected(problem, version, peer, settings),
            Ok(()) => {
                let limit = settings.limits.request_body_bytes;
                let idle = settings.timeouts.request_body_idle;
                let pace = LeastRate::new(settings.least_rate(), idle);
                let mut request = request.map(|incoming| RequestBody::new(incoming, limit, pace));
                let upload = request.body().upload();
                prepare_upgrade(&mut request, &settings.upgrades, &settings.request_fields);
                add_default_host(&mut request, &settings.upstreams);
                request.extensions_mut().insert(peer);
                if let Some(client) = client {
                    request.extensions_mut().insert(client.clone());
                }
                request.extensions_mut().insert(session.clone());
                read_json(&mut request, &settings.json_bodies, &settings.trusted_proxies).await;
                let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
                let Ok(mut answer) = service.call(request).await;
                if let Some(reason) = reason_to_close(&upload, answer.status(), session) {
                    close_for(reason, &mut answer, version, session);
                }
                answer.map(|body| Either::Left(CountedBody::new(body, version, exchange)))
            }
        };
        if is_upgrade_request {
            conversation.answer_upgrade(match answer.status() {
                StatusCode::SWITCHING_PROTOCOLS => UpgradeAnswer::Accepted,
                _ => UpgradeAnswer::Declined,
            });
        }
        Ok(answer)
    }
}

/// Checks the head of a request before the request is charged or forwarded.
///
/// # Errors
/// The [`Problem`] to send to the client, if the request must be refused.
fn admit<B: Body>(request: &Request<B>, limits: &Limits) -> Result<(), Problem> {
    if request.method() == Method::CONNECT {
        return Err(Violation::Connect.into());
    }
    // The strict reader has checked the bytes of HTTP/1. HTTP/2 has another framing, but the same
    // rules apply.
    if request.version() == Version::HTTP_2 {
        check_sizes(request, limits)?;
        check_host(request)?;
    }
    check_expectation(request.headers())?;
    if request.body().size_hint().lower() > limits.request_body_bytes {
        return Err(UploadFault::TooLarge.into());
    }
    Ok(())
}

fn check_sizes<B>(request: &Request<B>, limits: &Limits) -> Result<(), Problem> {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    if target.len() > limits.target_bytes {
        return Err(Violation::TargetTooLong.into());
    }
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Violation::Target.into());
    }
    if target == "*" && request.method() != Method::OPTIONS {
        return Err(Violation::Target.into());
    }
    if request.headers().len() > limits.header_fields {
        return Err(Violation::TooManyFields.into());
    }
    Ok(())
}

/// Refuses a request that does not name exactly one valid host. HTTP/2 clients send the host in
/// `:authority`, in the field `host`, or the same value in both.
fn check_host<B>(request: &Request<B>) -> Result<(), Problem> {
    let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().map(|host| host.as_bytes());
    if hosts.next().is_some() {
        return Err(Violation::HostRepeated.into());
    }
    match (authority, host) {
        (None, None) => Err(Violation::HostMissing.into()),
        (Some(authority), Some(host)) if !same_host(authority, host) => {
            Err(Violation::HostMismatch.into())
        }
        (one, other) => match one.into_iter().chain(other).all(is_host) {
            true => Ok(()),
            false => Err(Violation::HostMalformed.into()),
        },
    }
}

/// Refuses a request with an `expect` field other than `100-continue`. The 100 response is sent
/// when the body is first polled.
fn check_expectation(headers: &HeaderMap) -> Result<(), Problem> {
    let mut expectations = headers.get_all(header::EXPECT).iter();
    match expectations.all(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::EXPECTATION_FAILED,
            "The only supported expectation is 100-continue.",
        )),
    }
}

/// Returns the reason why the connection must be closed after the response, or `None` if the
/// connection stays open.
fn reason_to_close(upload: &Upload, status: StatusCode, session: &Session) -> Option<CloseReason> {
    if let Some(fault) = upload.fault() {
        // After a request that failed in its body, the start of the next request is unknown.
        return Some(fault.into());
    }
    if session.is_draining() {
        return Some(CloseReason::Shutdown);
    }
    // An error response that the layer returned instead of the upstream is a refusal.
    let is_error = status.is_client_error() || status.is_server_error();
    let is_refused =
        status == StatusCode::TOO_MANY_REQUESTS || (is_error && !upload.was_forwarded());
    (is_refused && session.is_nearly_full()).then_some(CloseReason::Refused)
}

/// Announces that the connection closes for `reason`. Over HTTP/1, the connection closes after the
/// response `answer`, and `answer` gets the field `connection: close`. Over HTTP/2, the other
/// streams of the connection continue: a slow request is only counted, and a refusal asks the
/// connection to close when no request is in flight. All other reasons have no effect over HTTP/2.
fn close_for<B>(
    reason: CloseReason,
    answer: &mut Response<B>,
    version: Version,
    session: &Session,
) {
    match (version, reason) {
        // The other streams of the connection continue. At shutdown, HTTP/2 sends `GOAWAY` instead.
        (Version::HTTP_2, CloseReason::SlowRequest) => session.count(reason),
        (Version::HTTP_2, CloseReason::Refused) => session.conversation().request_close(reason),
        (Version::HTTP_2, _) => {}
        _ => {
            session.conversation().note_close(reason);
            set_connection_close(answer, version);
        }
    }
}

/// Sets `connection: close` in the response, which informs HTTP/1 clients that no further request
/// is served on this connection. HTTP/2 uses `GOAWAY` instead.
fn set_connection_close<B>(answer: &mut Response<B>, version: Version) {
    let is_upgraded = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    if version != Version::HTTP_2 && !is_upgraded {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

fn rejected<B>(
    problem: Problem,
    version: Version,
    Peer(peer): Peer,
    settings: &Settings,
) -> Response<Either<B, Full<Bytes>>> {
    let Problem { status, detail } = problem;
    settings.on_rejected.call(Rejected { peer, status, detail });
    let mut response = problem.into_response();
    set_connection_close(&mut response, version);
    response.map(Either::Right)
}

/// A guard that counts a request as in flight until it is dropped: from the request's head to the
/// end of the response's body, also if the request or the response is aborted.
#[derive(Debug)]
struct ExchangeGuard(Arc<Conversation>);

impl ExchangeGuard {
    fn begin(conversation: &Arc<Conversation>) -> Self {
        conversation.begin_exchange();
        Self(Arc::clone(conversation))
    }
}

impl Drop for ExchangeGuard {
    fn drop(&mut self) {
        self.0.end_exchange();
    }
}

pin_project_lite::pin_project! {
    /// A response body that counts its request as in flight until the body ends. Over HTTP/2 the
    /// body is split into frames of at most [`MAX_FRAME`] bytes, to detect whether the client reads
    /// them.
    #[derive(Debug)]
    pub(crate) struct CountedBody<B> {
        #[pin]
        body: B,
        rest: Bytes,
        at_once: usize,
        _exchange: ExchangeGuard,
    }
}

impl<B> CountedBody<B> {
    fn new(body: B, version: Version, exchange: ExchangeGuard) -> Self {
        // Over HTTP/1, the stream itself detects that the client reads.
        let at_once = if version == Version::HTTP_2 { MAX_FRAME } else { usize::MAX };
        Self { body, rest: Bytes::new(), at_once, _exchange: exchange }
    }
}

impl<B: Body<Data = Bytes>> Body for CountedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let mut polled = match this.rest.is_empty() {
            true => this.body.poll_frame(cx),
            false => Poll::Ready(Some(Ok(Frame::data(std::mem::take(this.rest))))),
        };
        if let Poll::Ready(Some(Ok(frame))) = &mut polled
            && let Some(data) = frame.data_mut()
            && data.len() > *this.at_once
        {
            *this.rest = data.split_off(*this.at_once);
        }
        let bytes = match &polled {
            Poll::Ready(Some(Ok(frame))) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        note(&polled, bytes);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;

    use super::*;

    fn status(request: http::request::Builder) -> Option<u16> {
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let limits = Limits { header_fields: 2, target_bytes: 10, ..Limits::default() };
        admit(&request, &limits).err().map(|problem| problem.status.as_u16())
    }

    fn http2(uri: &str) -> http::request::Builder {
        Request::builder().version(Version::HTTP_2).uri(uri)
    }

    #[test]
    fn http2_obeys_the_rules_of_http1() {
        assert_eq!(status(http2("http://a/")), None);
        assert_eq!(status(http2("http://a/").header("host", "A:80")), None);
        assert_eq!(status(http2("/").header("host", "a")), None);
        assert_eq!(status(http2("/")), Some(400));
        assert_eq!(status(http2("http://a/").header("host", "b")), Some(400));
        assert_eq!(status(http2("http://u@a/")), Some(400));
        assert_eq!(status(http2("http://a/").header("host", "a").header("host", "a")), Some(400));
        assert_eq!(status(http2("http://a/\u{e9}")), Some(400));
        assert_eq!(status(http2("http://a/0123456789")), Some(414));
        let many = http2("http://a/").header("a", "1").header("b", "2").header("c", "3");
        assert_eq!(status(many), Some(431));
        assert_eq!(status(http2("*").header("host", "a")), Some(400));
        assert_eq!(status(http2("*").header("host", "a").method(Method::OPTIONS)), None);
        assert_eq!(status(http2("a:80").method(Method::CONNECT)), Some(501));
    }

    #[test]
    fn only_100_continue_may_be_expected() {
        assert_eq!(status(http2("http://a/").header("expect", "100-Continue")), None);
        assert_eq!(status(http2("http://a/").header("expect", "tea")), Some(417));
    }
}
