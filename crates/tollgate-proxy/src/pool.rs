//! The pool of connections to one address of an upstream.
//!
//! The pool is written by hand, because the pooled client of `hyper-util` has a task for each
//! connection, and does not report whether a failed request was sent. Here the task of a request
//! drives its connection ([`UpstreamLink`]). A request is sent again only if no byte of it was
//! sent, or if it is idempotent and no byte of its response has arrived.

use std::{
    convert::Infallible,
    future::poll_fn,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use hyper::client::conn::http1;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::body::RequestBody;
use crate::connect::Connector;
use crate::failure::UpstreamFailure;
use crate::settings::Settings;
use crate::upload::Upload;
use crate::upstream_link::UpstreamLink;

mod streamed;

pub(crate) use streamed::StreamedBody;

/// The interval at which idle connections are checked, to remove those that the upstream has
/// closed.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The pool of idle connections ([`UpstreamLink`]) to one address. It contains at most
/// [`idle_upstream_connections`](crate::Limits::idle_upstream_connections).
#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    protocol: http1::Builder,
    most: usize,
    longest: Duration,
    idle_links: Mutex<IdleLinks>,
}

#[derive(Debug, Default)]
struct IdleLinks {
    /// The idle connections. The last one in the list was used most recently, and is used next.
    idle: Vec<IdleLink>,
    sweeping: Option<SweepTask>,
}

/// The marker that a sweep task runs: a task that closes idle connections until the pool is empty.
/// At most one sweep task runs.
#[derive(Debug)]
struct SweepTask;

#[derive(Debug)]
struct IdleLink {
    link: Box<UpstreamLink>,
    since: Instant,
}

/// Whether a request may use an idle connection of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// The request uses an idle connection, or a new connection if none is idle.
    Idle,
    /// The request uses a new connection, even if a connection is idle.
    New,
}

/// A request to the upstream, with the progress of its body.
///
/// The functions that send a request pass on a reference to this value. If each of their futures
/// contained the request, the request would be copied in memory for each of them.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The request. `None` if the request was sent and must not be sent again.
    request: Option<Request<RequestBody>>,
    pub(crate) upload: Upload,
}

impl Outgoing {
    pub(crate) fn new(request: Request<RequestBody>) -> Self {
        Self { upload: request.body().upload(), request: Some(request) }
    }

    /// Returns the request, or `None` if the request was sent and must not be sent again.
    pub(crate) const fn request(&self) -> Option<&Request<RequestBody>> {
        self.request.as_ref()
    }

    /// Takes the request to send it.
    ///
    /// # Errors
    /// The request was sent before, and must not be sent again.
    fn take(&mut self) -> Result<Request<RequestBody>, UpstreamFailure> {
        self.request.take().ok_or(UpstreamFailure::ConnectionLost)
    }
}

/// The error of a request that received no response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered {
    pub(crate) failure: UpstreamFailure,
    /// The reason why the request may be sent again, in which case [`Outgoing`] contains the
    /// request. `None` if the request must not be sent again.
    pub(crate) resend: Option<Resend>,
}

/// The reason why a request that received no response may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resend {
    /// The address could not be reached, so nothing was sent.
    NotConnected,
    /// The request is idempotent and has no body, and its pooled connection was closed before a
    /// byte of the response arrived.
    Closed,
}

impl Unanswered {
    fn not_connected(failure: UpstreamFailure) -> Self {
        Self { failure, resend: Some(Resend::NotConnected) }
    }
}

impl From<UpstreamFailure> for Unanswered {
    fn from(failure: UpstreamFailure) -> Self {
        Self { failure, resend: None }
    }
}

/// Returns a copy of a request if it could be sent a second time, because it is idempotent and has
/// no body. Returns `None` for other requests.
fn copy(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    if !request.method().is_idempotent() {
        return None;
    }
    let mut copy = Request::new(request.body().copy_of_empty()?);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    *copy.version_mut() = request.version();
    copy.headers_mut().clone_from(request.headers());
    Some(copy)
}

impl Pool {
    /// Creates an empty pool. The pool connects on first use.
    pub(crate) fn new(connector: Connector, settings: &Settings) -> Self {
        let (timeouts, limits) = (&settings.timeouts, &settings.limits);
        let mut protocol = http1::Builder::new();
        protocol.max_buf_size(limits.response_header_bytes);
        Self {
            connector,
            protocol,
            most: limits.idle_upstream_connections,
            longest: timeouts.keep_alive_idle,
            idle_links: Mutex::default(),
        }
    }

    /// Sends `outgoing` over an idle connection if `links` allows one, otherwise over a new
    /// connection, and returns the response. The request is sent at most once: it is sent over a
    /// second connection only if the first was closed before any byte of the request was sent.
    pub(crate) async fn exchange(
        self: &Arc<Self>,
        outgoing: &mut Outgoing,
        links: Links,
    ) -> Result<Response<StreamedBody>, Unanswered> {
        while let Some(mut link) = self.take(links) {
            let request = outgoing.take()?;
            outgoing.request = copy(&request);
            match link.send(request).await {
                Ok(response) => {
                    return Ok(response.map(|body| self.stream(body, link, &outgoing.upload)));
                }
                Err(mut unanswered) => match unanswered.take_message() {
                    Some(unsent) => outgoing.request = Some(unsent),
                    None => {
                        let error = unanswered.into_error();
                        let is_silent = link.is_silent() && !error.is_parse();
                        let may_resend = is_silent && outgoing.request.is_some();
                        let resend = may_resend.then_some(Resend::Closed);
                        return Err(Unanswered { failure: UpstreamFailure::of(&error), resend });
                    }
                },
            }
        }
        // Boxed, because most requests use an idle link, and opening one needs a large future.
        let opened = Box::pin(self.open()).await;
        let mut link = Box::new(opened.map_err(Unanswered::not_connected)?);
        match link.send(outgoing.take()?).await {
            Ok(response) => Ok(response.map(|body| self.stream(body, link, &outgoing.upload))),
            Err(unanswered) => Err(UpstreamFailure::of(&unanswered.into_error()).into()),
        }
    }

    /// Sends `outgoing`, which asks for another protocol, over a connection that is not reused.
    pub(crate) async fn exchange_once(
        &self,
        outgoing: &mut Outgoing,
    ) -> Result<Response<StreamedBody>, Unanswered> {
        let io = self.connector.connect().await.map_err(Unanswered::not_connected)?;
        let failed = |error: hyper::Error| Unanswered::from(UpstreamFailure::of(&error));
        let (mut sender, connection) = self.protocol.handshake(io).await.map_err(failed)?;
        // The error is reported to the task that waits for the upgrade.
        tokio::spawn(connection.with_upgrades());
        let response = sender.send_request(outgoing.take()?).await;
        response.map(|response| response.map(StreamedBody::new)).map_err(failed)
    }

    async fn open(&self) -> Result<UpstreamLink, UpstreamFailure> {
        let io = self.connector.connect().await?;
        let reads = io.inner().bytes();
        let opened = self.protocol.handshake(io).await;
        let (sender, connection) = opened.map_err(|error| UpstreamFailure::of(&error))?;
        Ok(UpstreamLink::new(sender, connection, reads))
    }

    fn stream(
        self: &Arc<Self>,
        body: hyper::body::Incoming,
        link: Box<UpstreamLink>,
        upload: &Upload,
    ) -> StreamedBody {
        if upload.is_under_way() {
            // The response began before the end of the request. The response must not wait for the
            // request, and the request must not wait for the response.
            let (response, has_ended) = oneshot::channel();
            self.keep_when_ready(link, Some(has_ended));
            return StreamedBody::beside(body, response);
        }
        StreamedBody::over(body, link, Arc::clone(self))
    }

    fn take(&self, links: Links) -> Option<Box<UpstreamLink>> {
        if links == Links::New {
            return None;
        }
        let IdleLink { link, since } = self.idle_links.lock().idle.pop()?;
        // The other idle connections have been idle for longer than this one. The sweep closes
        // them.
        (since.elapsed() < self.longest).then_some(link)
    }

    /// Puts a connection back into the pool as soon as its request is sent completely. The caller
    /// must have read the response to its end.
    pub(crate) fn release(self: &Arc<Self>, link: Box<UpstreamLink>) {
        if link.is_ready() {
            self.keep(link);
        } else if !link.is_closed() {
            self.keep_when_ready(link, None);
        }
    }

    /// Spawns a task that drives a connection until it can accept the next request, and then puts
    /// the connection back into the pool. `response` resolves at the end of the response, if the
    /// response is still arriving: until then, the time limits of the two bodies apply. Afterwards
    /// the rest of the request may take as long as a connection may be idle.
    fn keep_when_ready(
        self: &Arc<Self>,
        mut link: Box<UpstreamLink>,
        response: Option<oneshot::Receiver<Infallible>>,
    ) {
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            let freed = poll_fn(|cx| link.poll_ready(cx));
            let is_late = async {
                if let Some(response) = response {
                    // The sender is only dropped.
                    let _ = response.await;
                }
                sleep(pool.longest).await;
            };
            tokio::select! {
                biased;
                () = freed => {}
                () = is_late => return,
            }
            if link.is_ready() {
                pool.keep(link);
            }
        });
    }

    fn keep(self: &Arc<Self>, link: Box<UpstreamLink>) {
        // The next request wakes the connection, and must not wake the task of an earlier request.
        link.detach();
        let mut idle_links = self.idle_links.lock();
        if idle_links.idle.len() >= self.most {
            return;
        }
        idle_links.idle.push(IdleLink { link, since: Instant::now() });
        if idle_links.sweeping.is_none() {
            idle_links.sweeping = Some(SweepTask);
            tokio::spawn(sweep_until_empty(Arc::downgrade(self)));
        }
    }

    /// Closes the connections that were idle for too long, and removes those that are closed.
    /// Returns the marker of the sweep task if any connections are left, and `None` if the sweep
    /// task must end.
    fn sweep(&self, cx: &mut Context<'_>) -> Option<SweepTask> {
        let mut idle_links = self.idle_links.lock();
        let is_closed = |idle: &mut IdleLink| {
            idle.link.drive(cx);
            idle.link.detach();
            idle.link.is_closed() || idle.since.elapsed() >= self.longest
        };
        let over: Vec<IdleLink> = idle_links.idle.extract_if(.., is_closed).collect();
        if idle_links.idle.is_empty() {
            idle_links.sweeping = None;
        }
        let sweeping = idle_links.sweeping.as_ref().map(|SweepTask| SweepTask);
        drop(idle_links);
        // The connections are closed after the lock is released.
        drop(over);
        sweeping
    }
}

async fn sweep_until_empty(pool: Weak<Pool>) {
    loop {
        sleep(SWEEP_EVERY).await;
        let Some(pool) = pool.upgrade() else { return };
        if poll_fn(|cx| Poll::Ready(pool.sweep(cx))).await.is_none() {
            return;
        }
    }
}
