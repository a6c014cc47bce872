use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::Pool;
use crate::{in_flight::InFlightGuard, upstream_link::UpstreamLink};

/// The body of an upstream's response, with the connection over which the body arrives. At the end
/// of the body, the connection returns to the pool.
#[derive(Debug)]
pub(crate) struct StreamedBody {
    incoming: Incoming,
    connection: Connection,
    /// The guard that counts the request as in flight until the end of the body.
    in_flight: Option<InFlightGuard>,
}

/// The connection over which a body arrives.
#[derive(Debug)]
enum Connection {
    /// This body drives the connection.
    Pooled { link: Box<UpstreamLink>, pool: Arc<Pool> },
    /// A task of the pool drives the connection, because the request is still being sent. The drop
    /// of the sender reports the end of this body to the task.
    Driven { _under_way: oneshot::Sender<Infallible> },
    /// The connection does not return to the pool, or has returned.
    Other,
}

impl StreamedBody {
    /// Creates a body that arrives over a connection that does not return to the pool.
    pub(crate) fn new(incoming: Incoming) -> Self {
        Self { incoming, connection: Connection::Other, in_flight: None }
    }

    /// Creates a body that arrives while its request is still being sent. `under_way` is dropped at
    /// the end of the body.
    pub(crate) fn beside(incoming: Incoming, under_way: oneshot::Sender<Infallible>) -> Self {
        let connection = Connection::Driven { _under_way: under_way };
        Self { incoming, connection, in_flight: None }
    }

    /// Creates a body that arrives over `link`, a connection of `pool`.
    pub(crate) fn over(incoming: Incoming, link: Box<UpstreamLink>, pool: Arc<Pool>) -> Self {
        Self { incoming, connection: Connection::Pooled { link, pool }, in_flight: None }
    }

    /// Adds `guard`, which counts the request as in flight until the end of the body.
    pub(crate) fn counted(mut self, guard: InFlightGuard) -> Self {
        self.in_flight = Some(guard);
        self
    }

    /// Removes and returns the guard that counts the request as in flight.
    pub(crate) fn take_guard(&mut self) -> Option<InFlightGuard> {
        self.in_flight.take()
    }

    fn release(&mut self) {
        let connection = std::mem::replace(&mut self.connection, Connection::Other);
        if let Connection::Pooled { link, pool } = connection {
            pool.release(link);
        }
    }
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { incoming, connection, .. } = &mut *self;
        let polled = match connection {
            Connection::Pooled { link, .. } => {
                link.poll_driven(cx, |cx| Pin::new(&mut *incoming).poll_frame(cx))
            }
            Connection::Driven { .. } | Connection::Other => Pin::new(incoming).poll_frame(cx),
        };
        let is_last = match &polled {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(frame))) => frame.is_trailers(),
            _ => false,
        };
        if is_last {
            self.in_flight = None;
            self.release();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// Closes the connection if the response was not read to its end. The close aborts the upstream's
/// work.
impl Drop for StreamedBody {
    fn drop(&mut self) {
        if self.incoming.is_end_stream() {
            self.release();
        }
    }
}
