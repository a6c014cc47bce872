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
    failure::Failure,
    link::Link,
};

/// How often idle links are looked at, so that those the upstream closed do not lie about.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The links to the upstream that wait for their next request, at most
/// [`idle_upstream_connections`](crate::Limits::idle_upstream_connections).
#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    protocol: http1::Builder,
    most: usize,
    longest: Duration,
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// The one that was used last is last, and used next.
    idle: Vec<Idle>,
    sweeping: Option<Sweeping>,
}

/// A task looks after the shelf until it is empty.
#[derive(Debug)]
struct Sweeping;

#[derive(Debug)]
struct Idle {
    link: Box<Link>,
    since: Instant,
}

impl Pool {
    /// An empty pool; it connects when it is first used.
    pub(crate) fn new(settings: &Settings) -> Self {
        let (timeouts, limits) = (&settings.timeouts, &settings.limits);
        let mut protocol = http1::Builder::new();
        protocol.max_buf_size(limits.response_header_bytes);
        Self {
            connector: Connector::new(&settings.upstream, timeouts.connect),
            protocol,
            most: limits.idle_upstream_connections,
            longest: timeouts.keep_alive_idle,
            shelf: Mutex::default(),
        }
    }

    /// Sends `request`, over an idle link if there is one. It goes out once: only a request that an idle link had not
    /// begun when it turned out to be closed is given to the next.
    pub(crate) async fn exchange(
        self: &Arc<Self>,
        mut request: Request<RequestBody>,
    ) -> Result<Response<StreamedBody>, Failure> {
        let upload = request.body().upload();
        while let Some(mut link) = self.take() {
            match link.ask(request).await {
                Ok(response) => return Ok(response.map(|body| self.stream(body, link, &upload))),
                Err(mut unanswered) => match unanswered.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Failure::of(&unanswered.into_error())),
                },
            }
        }
        let mut link = Box::new(self.open().await?);
        match link.ask(request).await {
            Ok(response) => Ok(response.map(|body| self.stream(body, link, &upload))),
            Err(unanswered) => Err(Failure::of(&unanswered.into_error())),
        }
    }

    /// Sends a `request` that asks for another protocol, over a connection that is not used again.
    pub(crate) async fn exchange_once(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<StreamedBody>, Failure> {
        let io = self.connector.connect().await?;
        let opened = self.protocol.handshake(io).await;
        let (mut sender, connection) = opened.map_err(|error| Failure::of(&error))?;
        // Who waits for the upgrade sees its end.
        tokio::spawn(connection.with_upgrades());
        let response = sender.send_request(request).await;
        response
            .map(|response| response.map(StreamedBody::new))
            .map_err(|error| Failure::of(&error))
    }

    async fn open(&self) -> Result<Link, Failure> {
        let io = self.connector.connect().await?;
        let opened = self.protocol.handshake(io).await;
        let (sender, connection) = opened.map_err(|error| Failure::of(&error))?;
        Ok(Link::new(sender, connection))
    }

    fn stream(
        self: &Arc<Self>,
        body: hyper::body::Incoming,
        link: Box<Link>,
        upload: &crate::body::Upload,
    ) -> StreamedBody {
        if upload.is_under_way() {
            // The response overtook its request. Neither must wait for the other.
            self.give_back(link);
            return StreamedBody::new(body);
        }
        StreamedBody::over(body, link, Arc::clone(self))
    }

    fn take(&self) -> Option<Box<Link>> {
        let Idle { link, since } = self.shelf.lock().idle.pop()?;
        // Those below it have waited longer; the sweep finds them.
        (since.elapsed() < self.longest).then_some(link)
    }

    /// Keeps a link whose response was read to its end, as soon as its request is sent to its end too.
    pub(crate) fn give_back(self: &Arc<Self>, mut link: Box<Link>) {
        if link.is_free() {
            self.keep(link);
        } else if !link.is_over() {
            let pool = Arc::clone(self);
            tokio::spawn(async move {
                let freed = poll_fn(|cx| link.poll_free(cx));
                if timeout(pool.longest, freed).await.is_ok() && link.is_free() {
                    pool.keep(link);
                }
            });
        }
    }

    fn keep(self: &Arc<Self>, link: Box<Link>) {
        let mut shelf = self.shelf.lock();
        if shelf.idle.len() >= self.most {
            return;
        }
        shelf.idle.push(Idle { link, since: Instant::now() });
        if shelf.sweeping.is_none() {
            shelf.sweeping = Some(Sweeping);
            tokio::spawn(sweep_until_empty(Arc::downgrade(self)));
        }
    }

    /// Closes what idled too long or was closed. Tells whether anything is left.
    fn sweep(&self, cx: &mut Context<'_>) -> Option<Sweeping> {
        let mut shelf = self.shelf.lock();
        let is_over = |idle: &mut Idle| {
            idle.link.work(cx);
            idle.link.is_over() || idle.since.elapsed() >= self.longest
        };
        let over: Vec<Idle> = shelf.idle.extract_if(.., is_over).collect();
        if shelf.idle.is_empty() {
            shelf.sweeping = None;
        }
        let sweeping = shelf.sweeping.as_ref().map(|Sweeping| Sweeping);
        drop(shelf);
        // Closed without the lock.
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
