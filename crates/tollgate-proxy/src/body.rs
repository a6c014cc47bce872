use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tollgate_http::{LeastRate, RateTerms, TooSlow, Violation};

use crate::{
    hop,
    upload::{Upload, UploadFault},
};

mod read_ahead;

use read_ahead::ReadAhead;
pub(crate) use read_ahead::read_json;

/// A request body on its way to the upstream: streamed, with limits on its size, its rate and its
/// pauses.
#[derive(Debug)]
pub struct RequestBody {
    /// The stream from which the rest of the body is read. `None` if this body is a copy of an
    /// empty body.
    incoming: Option<Incoming>,
    /// The part of the body that was read before the decision on the request. `None` for most
    /// requests, of which nothing is read in advance. The value is boxed, because the body is moved
    /// often.
    ahead: Option<Box<ReadAhead>>,
    left: u64,
    limit: u64,
    pace: LeastRate,
    upload: Upload,
}

/// The reason why a body failed before its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// The client sent no data for too long.
    Stalled {
        /// The length of the pause.
        waited: Duration,
    },
    /// The client sent data more slowly than the least rate.
    TooSlow {
        /// The least rate, in bytes per second.
        least: u32,
    },
    /// The body is larger than [`Limits::request_body_bytes`](crate::Limits::request_body_bytes).
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The connection to the client failed, or the framing of the body is invalid.
    Broken(hyper::Error),
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, limit: u64, pace: LeastRate) -> Self {
        let upload = Upload::begin(incoming.is_end_stream());
        Self { incoming: Some(incoming), ahead: None, left: limit, limit, pace, upload }
    }

    /// Creates an empty body.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        let (pace, upload) = (LeastRate::new(RateTerms::NONE, Duration::MAX), Upload::begin(true));
        Self { incoming: None, ahead: None, left: 0, limit: 0, pace, upload }
    }

    /// Returns a copy of this body if the body has no content, otherwise `None`.
    pub(crate) fn copy_of_empty(&self) -> Option<Self> {
        let (left, limit, upload) = (self.left, self.limit, self.upload.clone());
        let pace = || LeastRate::new(RateTerms::NONE, self.pace.longest_pause());
        self.is_end_stream().then(|| Self {
            incoming: None,
            ahead: None,
            left,
            limit,
            pace: pace(),
            upload,
        })
    }

    /// Returns a handle to the progress of this body. The task that waits for the response reads
    /// the progress.
    pub(crate) fn upload(&self) -> Upload {
        self.upload.clone()
    }

    /// Polls the client's connection for the next frame of the body, and applies the limits on size
    /// and rate.
    fn poll_incoming(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        match Pin::new(incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(self.pass(frame))),
            Poll::Ready(Some(Err(error))) => {
                self.upload
                    .fail(violation_in(&error).map_or(UploadFault::Broken, UploadFault::Malformed));
                Poll::Ready(Some(Err(BodyError::Broken(error))))
            }
            Poll::Ready(None) => {
                self.upload.complete();
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.upload.wait_for_client();
                let (fault, error) = match ready!(self.pace.poll_too_slow(cx)) {
                    TooSlow::Stalled => {
                        let waited = self.pace.longest_pause();
                        (UploadFault::Stalled, BodyError::Stalled { waited })
                    }
                    TooSlow::BelowRate => {
                        let least = self.pace.bytes_per_second();
                        (UploadFault::TooSlow, BodyError::TooSlow { least })
                    }
                };
                self.upload.fail(fault);
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn pass(&mut self, mut frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyError> {
        self.pace.moved(frame.data_ref().map_or(0, Bytes::len));
        self.upload.progress();
        if let Some(data) = frame.data_ref() {
            self.left = self.left.checked_sub(data.len() as u64).ok_or_else(|| {
                self.upload.fail(UploadFault::TooLarge);
                BodyError::TooLarge { limit: self.limit }
            })?;
        }
        if let Some(trailers) = frame.trailers_mut() {
            hop::strip_trailers(trailers);
        }
        if self.incoming.as_ref().is_none_or(Incoming::is_end_stream) {
            self.upload.complete();
        }
        Ok(frame)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.ahead.as_mut().and_then(|ahead| ahead.pop()) {
            Some(frame) => Poll::Ready(Some(frame)),
            None => self.poll_incoming(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.as_ref().is_none_or(|ahead| ahead.is_empty())
            && self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let incoming = self.incoming.as_ref();
        let mut hint = incoming.map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint);
        let ahead = self.ahead.as_ref().map_or(0, |ahead| ahead.bytes());
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(ahead));
        }
        hint.set_lower(hint.lower().saturating_add(ahead));
        hint
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.upload.end();
    }
}

/// Returns the violation of the framing rules that the strict reader detected, if `error` contains
/// one. hyper reports the violation as a source of its own error.
fn violation_in(error: &hyper::Error) -> Option<Violation> {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(violation) = error.downcast_ref::<Violation>() {
            return Some(*violation);
        }
        // An `io::Error` wraps its payload, but its `source()` skips the payload itself.
        let payload = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match payload {
            Some(payload) => Some(payload),
            None => error.source(),
        };
    }
    None
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stalled { waited } => {
                write!(f, "no byte of the body arrived for {} ms", waited.as_millis())
            }
            Self::TooSlow { least } => write!(f, "the body arrived below {least} bytes a second"),
            Self::TooLarge { limit } => write!(f, "the body is larger than {limit} bytes"),
            Self::Broken(error) => write!(f, "the body ended early: {error}"),
        }
    }
}

impl StdError for BodyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Broken(error) => Some(error),
            _ => None,
        }
    }
}
