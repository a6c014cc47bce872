//! The body of a limited response: the body of the service, or the body of a refusal.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

use super::in_flight::InFlight;

pin_project! {
    /// The body of a response. The body of the service is passed through unchanged. The body of a
    /// refusal is made by the limiter.
    pub struct Body<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<B> {
        Service { #[pin] body: B, in_flight: Option<InFlight> },
        Limiter { text: Option<Bytes> },
    }
}

impl<B> Body<B> {
    pub(super) fn service(body: B, in_flight: InFlight) -> Self {
        Self { kind: Kind::Service { body, in_flight: Some(in_flight) } }
    }

    pub(super) fn limiter(text: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Limiter { text: Some(text.into()) } }
    }
}

impl<B: http_body::Body<Data = Bytes>> http_body::Body for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.project().kind.project() {
            KindProjection::Service { body, in_flight } => {
                let frame = ready!(body.poll_frame(context));
                match &frame {
                    Some(Ok(frame)) => watch(in_flight.as_mut(), frame),
                    // The response ends here, so its permits and reservations end now, even if the
                    // connection stays open.
                    Some(Err(_)) | None => *in_flight = None,
                }
                Poll::Ready(frame)
            }
            KindProjection::Limiter { text } => {
                Poll::Ready(text.take().map(|text| Ok(Frame::data(text))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Service { body, .. } => body.is_end_stream(),
            Kind::Limiter { text } => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Service { body, .. } => body.size_hint(),
            Kind::Limiter { text } => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
        }
    }
}

/// Passes the bytes of `frame` to the meter of the request, if the request has a meter.
fn watch(in_flight: Option<&mut InFlight>, frame: &Frame<Bytes>) {
    let metering = in_flight.and_then(InFlight::metering);
    if let (Some(metering), Some(data)) = (metering, frame.data_ref()) {
        metering.observe(data);
    }
}

impl<B> std::fmt::Debug for Body<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
