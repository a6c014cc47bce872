//! The layer around the limits that records requests.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use tollgate::model::policy::Policy;
use tollgate::model::{Headers, RequestAttributes};
use tollgate::tower::{Peer, Refused};
use tollgate::{Clock, Limiter, SystemClock};
use tollgate_backend::Backend;
use tower_layer::Layer;
use tower_service::Service;

use super::format::{OTHER_REASON, Record, RequestLine};
use super::writer::Lines;

/// A layer that logs requests around `inner`, the layer that limits the requests. The log therefore
/// contains refused requests too.
#[derive(Clone, Debug)]
pub(crate) struct AccessLogLayer<L> {
    pub(crate) inner: L,
    pub(crate) lines: Lines,
    pub(crate) limiter: Arc<Limiter<Backend>>,
}

impl<S, L: Layer<S>> Layer<S> for AccessLogLayer<L> {
    type Service = AccessLogService<L::Service>;

    fn layer(&self, service: S) -> Self::Service {
        AccessLogService {
            inner: self.inner.layer(service),
            lines: self.lines.clone(),
            limiter: Arc::clone(&self.limiter),
        }
    }
}

/// A service that logs its requests.
#[derive(Clone, Debug)]
pub(crate) struct AccessLogService<S> {
    inner: S,
    lines: Lines,
    limiter: Arc<Limiter<Backend>>,
}

impl<S, In, Out> Service<Request<In>> for AccessLogService<S>
where
    S: Service<Request<In>, Response = Response<Out>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<LoggedBody<Out>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        let mut entry = Entry::begin(&request, &self.limiter.policy(), self.lines.clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            entry.record.status = response.status();
            entry.record.refused_by = response.extensions().get().map(|Refused { limit }| {
                limit.as_ref().map_or(OTHER_REASON, |limit| limit.name()).to_owned()
            });
            Ok(response.map(|body| LoggedBody { body, entry }))
        })
    }
}

/// A request in flight. Dropping this value writes the line of the request, either at the end of
/// the response or when the client has gone.
#[derive(Debug)]
struct Entry {
    record: Record,
    began: Instant,
    lines: Lines,
}

impl Entry {
    fn begin<B>(request: &Request<B>, policy: &Policy, lines: Lines) -> Self {
        let fields = request.headers();
        let value = |name| fields.get(name).cloned();
        let record = Record {
            time: SystemClock.now().as_millis(),
            client: client(request, policy),
            request: Some(RequestLine {
                method: request.method().clone(),
                target: target(request, policy),
                version: request.version(),
            }),
            host: value(header::HOST),
            referer: value(header::REFERER),
            user_agent: value(header::USER_AGENT),
            // nginx's status for clients that went away before the response.
            status: StatusCode::from_u16(499).unwrap_or_default(),
            bytes: 0,
            duration: Duration::ZERO,
            refused_by: None,
        };
        Self { record, began: Instant::now(), lines }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.record.duration = self.began.elapsed();
        self.lines.add(&self.record);
    }
}

/// Returns the client address by which the policy counts, or `None` if the address is unknown. For
/// a request from trusted proxies, this is the address that the proxies report.
fn client<B>(request: &Request<B>, policy: &Policy) -> Option<std::net::IpAddr> {
    let Peer(peer) = *request.extensions().get()?;
    let headers = &Fields(request.headers());
    let attributes = RequestAttributes {
        method: request.method().as_str(),
        path: request.uri().path(),
        query: None,
        host: None,
        peer: Some(peer.ip()),
        headers,
    };
    policy.forwarding().client(&attributes)
}

/// Returns the path and the query. The query is left out if a parameter can be a credential.
fn target<B>(request: &Request<B>, policy: &Policy) -> String {
    let uri = request.uri();
    match uri.query() {
        Some(_) if policy.dimensions().iter().any(|one| one.source.is_secret_in_query()) => {
            format!("{}?-", uri.path())
        }
        Some(query) => format!("{}?{query}", uri.path()),
        None => uri.path().to_owned(),
    }
}

struct Fields<'a>(&'a HeaderMap);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.get_all(name).iter().nth(index).map(HeaderValue::as_bytes)
    }
}

pin_project_lite::pin_project! {
    /// A body that counts its bytes for the log entry.
    #[derive(Debug)]
    pub(crate) struct LoggedBody<B> {
        #[pin]
        body: B,
        entry: Entry,
    }
}

impl<B: Body<Data = Bytes>> Body for LoggedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            this.entry.record.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
