//! The bodies of responses.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use tollgate_http::Deadline;

use crate::{body::BodyError, hop, pool::StreamedBody};

/// A response body on its way to the client: streamed from the upstream, or created by the proxy.
///
/// Dropping a body before its end closes the upstream connection, which aborts the upstream's work.
#[derive(Debug)]
pub struct ResponseBody(ResponseSource);

#[derive(Debug)]
enum ResponseSource {
    Upstream { incoming: StreamedBody, idle: Deadline },
    Local(Full<Bytes>),
}

impl ResponseBody {
    pub(crate) fn upstream(incoming: StreamedBody, idle: Duration) -> Self {
        Self(ResponseSource::Upstream { incoming, idle: Deadline::new(idle) })
    }

    pub(crate) fn empty() -> Self {
        Self(ResponseSource::Local(Full::default()))
    }
}

impl From<Full<Bytes>> for ResponseBody {
    fn from(body: Full<Bytes>) -> Self {
        Self(ResponseSource::Local(body))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let (incoming, idle) = match &mut self.0 {
            ResponseSource::Upstream { incoming, idle } => (incoming, idle),
            ResponseSource::Local(body) => {
                return Pin::new(body).poll_frame(cx).map_err(|never| match never {});
            }
        };
        match Pin::new(incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(mut frame))) => {
                idle.clear();
                if let Some(trailers) = frame.trailers_mut() {
                    hop::strip_trailers(trailers);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(BodyError::Broken(error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                ready!(idle.poll_passed(cx));
                Poll::Ready(Some(Err(BodyError::Stalled { waited: idle.limit() })))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            ResponseSource::Upstream { incoming, .. } => incoming.is_end_stream(),
            ResponseSource::Local(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            ResponseSource::Upstream { incoming, .. } => incoming.size_hint(),
            ResponseSource::Local(body) => body.size_hint(),
        }
    }
}
