//! An answer that may go on for ever, and ends with the process.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame};
use pin_project_lite::pin_project;
use tonic::Status;
use tonic::body::Body;

use crate::shutdown::{Phase, Shutdown};

pin_project! {
    /// A body that ends with `UNAVAILABLE` once the process drains.
    pub(super) struct Ending {
        #[pin]
        body: Body,
        draining: Pin<Box<dyn Future<Output = ()> + Send>>,
        is_over: bool,
    }
}

impl Ending {
    pub(super) fn new(body: Body, mut shutdown: Shutdown) -> Self {
        let draining = Box::pin(async move { shutdown.reached(Phase::Draining).await });
        Self { body, draining, is_over: false }
    }
}

impl hyper::body::Body for Ending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.project();
        if *this.is_over {
            return Poll::Ready(None);
        }
        // What was asked is answered first.
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            return Poll::Ready(frame);
        }
        if this.draining.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        *this.is_over = true;
        let trailers = Status::unavailable("the server ends; ask another").into_http::<Body>();
        Poll::Ready(Some(Ok(Frame::trailers(trailers.into_parts().0.headers))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || hyper::body::Body::is_end_stream(&self.body)
    }
}
