//! Request streams that end when the process drains.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming};
use pin_project_lite::pin_project;

use tollgate_http::{Phase, Shutdown};

pin_project! {
    /// A request body that ends when the process starts to drain. The service that reads the body
    /// then finishes after it has answered all messages that have arrived.
    pub(super) struct DrainingBody {
        #[pin]
        body: Incoming,
        draining: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    }
}

impl DrainingBody {
    pub(super) fn new(body: Incoming, mut shutdown: Shutdown) -> Self {
        let draining = Box::pin(async move { shutdown.reached(Phase::Draining).await });
        Self { body, draining }
    }
}

impl Body for DrainingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.project();
        // Messages that have arrived are answered before the end.
        match this.body.poll_frame(cx) {
            Poll::Pending => this.draining.as_mut().poll(cx).map(|()| None),
            frame => frame,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
