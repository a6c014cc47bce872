//! Questions that may go on for ever, and end with the process.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming};
use pin_project_lite::pin_project;

use crate::shutdown::{Phase, Shutdown};

pin_project! {
    /// A request's body that is over once the process drains: who answers it has then answered all.
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
        // What was asked is answered first.
        match this.body.poll_frame(cx) {
            Poll::Pending => this.draining.as_mut().poll(cx).map(|()| None),
            frame => frame,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
