use std::{
    future::poll_fn,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use hyper::client::conn::http1;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    Settings,
    body::{RequestBody, StreamedBody},
    connect::Connector,
    failure::UpstreamFailure,
    upstream_link::UpstreamLink,
};

/// How often idle links are checked, to remove those that the upstream has closed.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The pool of idle links to the upstream, at most
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
    /// The idle links. The last one was used most recently, and is used next.
    idle: Vec<IdleLink>,
    sweeping: Option<SweepTask>,
}

/// A task sweeps the pool until it is empty.
#[derive(Debug)]
struct SweepTask;

#[derive(Debug)]
struct IdleLink {
    link: Box<UpstreamLink>,
    since: Instant,
}

impl Pool {
    /// Creates an empty pool. It connects on first use.
    pub(crate) fn new(settings: &Settings) -> Self {
        let (timeouts, limits) = (&settings.timeouts, &settings.limits);
        let mut protocol = http1::Builder::new();
        protocol.max_buf_size(limits.response_header_bytes);
        Self {
            connector: Connector::new(&settings.upstream, timeouts.connect),
            protocol,
            most: limits.idle_upstream_connections,
            longest: timeouts.keep_alive_idle,
            idle_links: Mutex::default(),
        }
    }

    /// Sends `request`, over an idle link if there is one. It is sent at most once: only a request
    /// that a closed link has not started to send is passed to the next link.
    pub(crate) async fn exchange(
        self: &Arc<Self>,
        mut request: Request<RequestBody>,
    ) -> Result<Response<StreamedBody>, UpstreamFailure> {
        let upload = request.body().upload();
        while let Some(mut link) = self.take() {
            match link.send(request).await {
                Ok(response) => return Ok(response.map(|body| self.stream(body, link, &upload))),
                Err(mut unanswered) => match unanswered.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(UpstreamFailure::of(&unanswered.into_error())),
                },
            }
        }
        let mut link = Box::new(self.open().await?);
        match link.send(request).await {
            Ok(response) => Ok(response.map(|body| self.stream(body, link, &upload))),
            Err(unanswered) => Err(UpstreamFailure::of(&unanswered.into_error())),
        }
    }

    /// Sends a `request` that asks for another protocol, over a connection that is not reused.
    pub(crate) async fn exchange_once(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<StreamedBody>, UpstreamFailure> {
        let io = self.connector.connect().await?;
        let opened = self.protocol.handshake(io).await;
        let (mut sender, connection) = opened.map_err(|error| UpstreamFailure::of(&error))?;
        // The error is reported to the task that waits for the upgrade.
        tokio::spawn(connection.with_upgrades());
        let response = sender.send_request(request).await;
        response
            .map(|response| response.map(StreamedBody::new))
            .map_err(|error| UpstreamFailure::of(&error))
    }

    async fn open(&self) -> Result<UpstreamLink, UpstreamFailure> {
        let io = self.connector.connect().await?;
        let opened = self.protocol.handshake(io).await;
        let (sender, connection) = opened.map_err(|error| UpstreamFailure::of(&error))?;
        Ok(UpstreamLink::new(sender, connection))
    }

    fn stream(
        self: &Arc<Self>,
        body: hyper::body::Incoming,
        link: Box<UpstreamLink>,
        upload: &crate::body::Upload,
    ) -> StreamedBody {
        if upload.is_under_way() {
            // The response arrived before the end of its request. Neither must wait for the other.
            self.release(link);
            return StreamedBody::new(body);
        }
        StreamedBody::over(body, link, Arc::clone(self))
    }

    fn take(&self) -> Option<Box<UpstreamLink>> {
        let IdleLink { link, since } = self.idle_links.lock().idle.pop()?;
        // The other links have been idle for longer. The sweep closes them.
        (since.elapsed() < self.longest).then_some(link)
    }

    /// Returns a link to the pool after its response was read to its end, as soon as its request is
    /// sent completely, too.
    pub(crate) fn release(self: &Arc<Self>, mut link: Box<UpstreamLink>) {
        if link.is_ready() {
            self.keep(link);
        } else if !link.is_closed() {
            let pool = Arc::clone(self);
            tokio::spawn(async move {
                let freed = poll_fn(|cx| link.poll_ready(cx));
                if timeout(pool.longest, freed).await.is_ok() && link.is_ready() {
                    pool.keep(link);
                }
            });
        }
    }

    fn keep(self: &Arc<Self>, link: Box<UpstreamLink>) {
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

    /// Closes links that were idle for too long or are closed. Returns whether any are left.
    fn sweep(&self, cx: &mut Context<'_>) -> Option<SweepTask> {
        let mut idle_links = self.idle_links.lock();
        let is_closed = |idle: &mut IdleLink| {
            idle.link.drive(cx);
            idle.link.is_closed() || idle.since.elapsed() >= self.longest
        };
        let over: Vec<IdleLink> = idle_links.idle.extract_if(.., is_closed).collect();
        if idle_links.idle.is_empty() {
            idle_links.sweeping = None;
        }
        let sweeping = idle_links.sweeping.as_ref().map(|SweepTask| SweepTask);
        drop(idle_links);
        // They are closed after the lock is released.
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
