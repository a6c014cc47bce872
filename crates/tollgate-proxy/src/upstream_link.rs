use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{Connection, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::body::RequestBody;

/// A connection to the upstream, for one exchange after another.
///
/// It has no task of its own: whoever waits for the upstream does the connection's work meanwhile, which spares each
/// exchange two changes of task and two channels' wake-ups.
pub(crate) struct UpstreamLink {
    sender: SendRequest<RequestBody>,
    /// None once it is over.
    connection: Option<UpstreamConnection>,
}

pub(crate) type UpstreamConnection = Connection<TokioIo<TcpStream>, RequestBody>;

/// A request that got no answer; with the request itself where nothing of it was sent.
pub(crate) type SendError = TrySendError<Request<RequestBody>>;

impl UpstreamLink {
    pub(crate) fn new(sender: SendRequest<RequestBody>, connection: UpstreamConnection) -> Self {
        Self { sender, connection: Some(connection) }
    }

    /// Sends `request` and waits for the head of the response. Dropped before, it leaves a link that is of no more use.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let mut response = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            self.drive(cx);
            response.as_mut().poll(cx)
        })
        .await
    }

    /// Reads and writes what can be read and written now.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(cx).is_ready()
        {
            // Dropped, it tells those who wait, and hands a request back that it had not begun.
            self.connection = None;
        }
    }

    /// Whether it can take the next request.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_closed() && self.sender.is_ready()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_none()
    }

    /// Works until it is free or over.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.drive(cx);
        match self.is_closed() {
            true => Poll::Ready(()),
            // An error means that it is over.
            false => self.sender.poll_ready(cx).map(|_| ()),
        }
    }
}

impl fmt::Debug for UpstreamLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}
