use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use http::{
    Extensions, HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version, header,
    uri::PathAndQuery,
};
use http_body::Body;
use hyper::upgrade::OnUpgrade;
use tokio::time::Instant;
use tollgate::tower::{MatchedRules, Peer, RequestIncomplete, upgraded};
use tollgate::trace;
use tollgate_http::MovingTimer;
use tower_service::Service;

use crate::balance::{Attempt, Router};
use crate::body::RequestBody;
use crate::expected_response::ExpectedResponse;
use crate::failure::UpstreamFailure;
use crate::forwarded::{PeerName, Scheme, Trust, add_forwarding_fields, add_via};
use crate::hop;
use crate::pool::{Outgoing, StreamedBody};
use crate::response_body::ResponseBody;
use crate::session::Session;
use crate::settings::Settings;
use crate::tunnel;
use crate::upgrade::Upgrade;
use crate::upload::Upload;

/// A service that sends each request to the upstream and returns its response.
///
/// If the upstream fails, the service returns 502 or 504, with problem details (RFC 9457) as the
/// body and [`UpstreamFailed`](tollgate::tower::UpstreamFailed) in the extensions of the response.
/// A request whose body fails is answered with 400, 408 or 413.
#[derive(Debug, Clone)]
pub struct Forward(Arc<Shared>);

/// The state that all clones of a [`Forward`] share.
#[derive(Debug)]
struct Shared {
    router: Router,
    settings: Arc<Settings>,
}

impl Forward {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Self(Arc::new(Shared { router: Router::new(&settings), settings }))
    }
}

impl Service<Request<RequestBody>> for Forward {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        let forward = self.clone();
        let (upgrade, tunnel) = forward.upgrade(&mut request).unzip();
        let context = ForwardContext {
            expected: ExpectedResponse {
                method: request.method().clone(),
                upgrade,
                header_bytes: forward.0.settings.limits.response_header_bytes,
            },
            session: request.extensions().get().cloned(),
            tunnel,
            rules: request.extensions_mut().remove(),
        };
        let mut request = forward.outgoing(request);
        let span = trace::child(trace::SpanKind::Client, "upstream");
        span.inject(request.headers_mut());
        let mut outgoing = Outgoing::new(request);
        outgoing.upload.forward();
        Box::pin(span.run(async move {
            let answered = forward.exchange(&mut outgoing, context).await;
            let answer = answered.unwrap_or_else(|failure| {
                failure.into_response(&outgoing.upload).map(ResponseBody::from)
            });
            trace::record_status(answer.status());
            Ok(answer)
        }))
    }
}

/// The parts of a request that are needed to forward it and to interpret the response.
struct ForwardContext {
    expected: ExpectedResponse,
    session: Option<Session>,
    /// The client's end of the tunnel, if the request asks for another protocol.
    tunnel: Option<(OnUpgrade, Session)>,
    rules: Option<MatchedRules>,
}

impl Forward {
    async fn exchange(
        &self,
        outgoing: &mut Outgoing,
        context: ForwardContext,
    ) -> Result<Response<ResponseBody>, UpstreamFailure> {
        let group = Arc::clone(self.0.router.group(outgoing.request(), context.rules.as_ref()));
        let upload = outgoing.upload.clone();
        let attempt = Attempt::default();
        let mut timer = context.session.as_ref().map(Session::take_timer).unwrap_or_default();
        let response = {
            let sent = pin!(group.exchange(outgoing, &context.expected, &attempt));
            self.within_time(sent, &upload, &mut timer).await
        };
        if let Some(session) = &context.session {
            session.keep_timer(timer);
        }
        if matches!(response, Err(UpstreamFailure::ResponseTimeout)) {
            group.time_out(&attempt);
        }
        let mut answer = self.incoming(response?, context)?;
        if upload.is_withheld() {
            answer.extensions_mut().insert(RequestIncomplete);
        }
        Ok(answer)
    }

    /// Returns the protocol to which `request` asks to upgrade, and the client's end of the tunnel.
    fn upgrade(
        &self,
        request: &mut Request<RequestBody>,
    ) -> Option<(Upgrade, (OnUpgrade, Session))> {
        let upgrade = Upgrade::requested(request, &self.0.settings.upgrades)?;
        let session = request.extensions().get::<Session>()?.clone();
        Some((upgrade, (hyper::upgrade::on(request), session)))
    }

    /// Converts a request of the client to the request for the upstream. The hop-by-hop fields were
    /// already replaced before the layer decided on the request, so the layer and the upstream see
    /// the same fields.
    fn outgoing(&self, request: Request<RequestBody>) -> Request<RequestBody> {
        let (parts, body) = request.into_parts();
        let mut headers = parts.headers;
        // The proxy itself sends 100 Continue.
        headers.remove(header::EXPECT);
        let host = host_of(&mut headers, &parts.uri);
        join_cookies(&mut headers);
        set_framing(&mut headers, &body);
        self.add_forwarding_fields(&mut headers, &host, &parts.extensions);
        add_via(&mut headers, parts.version);

        let mut outgoing = Request::new(body);
        *outgoing.method_mut() = parts.method;
        *outgoing.uri_mut() = path_of(parts.uri);
        *outgoing.version_mut() = Version::HTTP_11;
        *outgoing.headers_mut() = headers;
        outgoing
    }

    /// Adds the header fields that inform the upstream about the client.
    fn add_forwarding_fields(
        &self,
        headers: &mut HeaderMap,
        host: &HeaderValue,
        extensions: &Extensions,
    ) {
        let Settings { trusted_proxies, forwarded, .. } = &*self.0.settings;
        let peer = extensions.get::<Peer>().map(|peer| peer.0.ip());
        let trust = Trust::in_peer(peer, &trusted_proxies.load());
        match extensions.get::<Session>() {
            Some(session) => {
                add_forwarding_fields(headers, session.peer(), host, trust, *forwarded);
            }
            None => {
                let peer = PeerName::of(peer, Scheme::Http);
                add_forwarding_fields(headers, &peer, host, trust, *forwarded);
            }
        }
    }

    /// Waits for the response's head. The time limit counts from the end of the request's body.
    /// While the upstream accepts no more of the body, the time limit counts from the last accepted
    /// part. While the client does not send the body, the time limits of the body apply instead.
    async fn within_time(
        &self,
        mut response: Pin<
            &mut impl Future<Output = Result<Response<StreamedBody>, UpstreamFailure>>,
        >,
        upload: &Upload,
        timer: &mut MovingTimer,
    ) -> Result<Response<StreamedBody>, UpstreamFailure> {
        let limit = self.0.settings.timeouts.response_head;
        let began = Instant::now();
        let end = || match upload.waits_for_client() {
            true => Instant::now() + limit,
            false => upload.last_progress().max(began) + limit,
        };
        poll_fn(|cx| match response.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(
                response.map_err(|failure| upload.fault().map_or(failure, UpstreamFailure::Client)),
            ),
            // When the timer fires, this code runs again and computes the current end time.
            Poll::Pending => {
                timer.poll_passed(cx, end()).map(|()| Err(UpstreamFailure::ResponseTimeout))
            }
        })
        .await
    }

    /// Converts a response of the upstream to the response for the client.
    fn incoming(
        &self,
        mut response: Response<StreamedBody>,
        context: ForwardContext,
    ) -> Result<Response<ResponseBody>, UpstreamFailure> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return self.switch_protocols(response, context);
        }
        let version = response.version();
        let mut headers = std::mem::take(response.headers_mut());
        hop::strip(&mut headers);
        add_via(&mut headers, version);
        let status = response.status();
        let idle = self.0.settings.timeouts.response_body_idle;
        let mut answer = Response::new(ResponseBody::upstream(response.into_body(), idle));
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }

    /// Starts a task that connects the client's connection and the upstream's connection to each
    /// other. Returns the 101 response for the client. Returns a failure if the client requested no
    /// other protocol.
    fn switch_protocols(
        &self,
        mut response: Response<StreamedBody>,
        context: ForwardContext,
    ) -> Result<Response<ResponseBody>, UpstreamFailure> {
        let upgrade = context.expected.upgrade.zip(context.tunnel);
        let (upgrade, (client, session)) = upgrade.ok_or(UpstreamFailure::InvalidResponse)?;
        let upstream = hyper::upgrade::on(&mut response);
        let in_flight = response.body_mut().take_guard();
        let idle = self.0.settings.timeouts.tunnel_idle;
        let (upgraded, while_upgraded) = upgraded();
        tokio::spawn(async move {
            // The permits of concurrency limits are held as long as the tunnel is open, and the
            // tunnel counts as a request in flight to its upstream.
            let _held = (while_upgraded, in_flight);
            tunnel::splice(client, upstream, idle, session).await;
        });

        let mut headers = std::mem::take(response.headers_mut());
        hop::strip(&mut headers);
        add_via(&mut headers, Version::HTTP_11);
        upgrade.write(&mut headers);
        let mut answer = Response::new(ResponseBody::empty());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *answer.headers_mut() = headers;
        answer.extensions_mut().insert(upgraded);
        Ok(answer)
    }
}

/// Converts a request target to origin form: a path with an optional query, or `*`.
fn path_of(target: Uri) -> Uri {
    if target.authority().is_none() {
        return target;
    }
    match target.path_and_query() {
        Some(path) if path.as_str() != "/" => Uri::from(path.clone()),
        _ => Uri::from(PathAndQuery::from_static("/")),
    }
}

/// Returns the host that the client requested, and sets the field `host` in `headers` to that host.
/// `target` is the request target.
fn host_of(headers: &mut HeaderMap, target: &Uri) -> HeaderValue {
    if let Some(host) = headers.get(header::HOST) {
        return host.clone();
    }
    let named = target.authority().and_then(|named| HeaderValue::from_str(named.as_str()).ok());
    let host = named.unwrap_or_else(|| HeaderValue::from_static(""));
    headers.insert(header::HOST, host.clone());
    host
}

/// Joins the `cookie` fields to one field. HTTP/2 may split a cookie over several fields, but
/// HTTP/1.1 requires a single field.
fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> =
        headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&crumbs.join(b"; ".as_slice()))
    {
        headers.insert(header::COOKIE, cookie);
    }
}

/// Sets the fields that state the length of `body`, the request's body.
///
/// The value of `content-length` is replaced, if the field is present, by the length of the body.
/// The value is then a plain decimal number, which all servers read in the same way. A body of
/// unknown length is chunked, whatever the method: without the field, hyper would drop such a body
/// of a GET or HEAD request.
fn set_framing(headers: &mut HeaderMap, body: &RequestBody) {
    let stated = headers.remove(header::CONTENT_LENGTH).is_some();
    match body.size_hint().exact() {
        Some(length) if stated => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        None if !body.is_end_stream() => {
            headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        _ => {}
    }
}
