//! Unary calls: one request message, one response message.
//!
//! The module is written by hand, because tonic's generated service takes 8,000 instructions for a
//! call and this module takes 2,200, of 48,500 for the whole call. The generated service reads and
//! writes a unary message as a stream of messages, boxes both bodies and several futures, and makes
//! the trailers from a status. Both numbers are from callgrind's profiles of the listener
//! benchmark, in which throttlecrab-server uses the generated service. They exclude the coding of
//! the messages, the bytes of HTTP/2 and the decision, which are needed in both cases.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response};
use prost::Message;
use tonic::Status;

/// The largest message that is accepted, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// The length of a message's prefix: a compression flag of 1 byte, and the length of the message in
/// 4 bytes.
const HEAD: usize = 1 + size_of::<u32>();

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// Reads the message of a call. Bytes after the message are read and ignored until the caller ends
/// its half of the stream.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` for a message longer than [`MAX_MESSAGE_BYTES`], and `INTERNAL` for bytes
/// that cannot be decoded as `M`, as the gRPC specification requires.
pub(super) async fn message<M, B>(mut body: B) -> Result<M, Status>
where
    M: Message + Default,
    B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
{
    let mut bytes = Bytes::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::cancelled(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > 2 * (HEAD + MAX_MESSAGE_BYTES) {
            return Err(too_long(bytes.len() + data.len()));
        }
        // Nearly always the whole message comes in one frame.
        bytes = if bytes.is_empty() { data } else { joined(bytes, &data) };
        framed(&bytes)?;
    }
    match framed(&bytes)? {
        Some(message) => M::decode(message).map_err(|error| Status::internal(error.to_string())),
        None => Err(Status::internal(format!(
            "the message is incomplete: the call ended after {} bytes",
            bytes.len()
        ))),
    }
}

/// Appends `next` to `bytes`, in place if there is room.
fn joined(bytes: Bytes, next: &[u8]) -> Bytes {
    let mut joined = bytes.try_into_mut().unwrap_or_else(|shared| (&*shared).into());
    joined.extend_from_slice(next);
    joined.freeze()
}

/// Returns the message at the start of `bytes`, or `None` if the message is not complete yet.
fn framed(bytes: &[u8]) -> Result<Option<&[u8]>, Status> {
    let Some((&[compression, length @ ..], rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    if compression != 0 {
        let wrong = format!(
            "the message has the compression flag {compression}: compression is not supported"
        );
        return Err(Status::internal(wrong));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_MESSAGE_BYTES {
        return Err(too_long(length));
    }
    Ok(rest.get(..length))
}

fn too_long(length: usize) -> Status {
    let wrong = format!("the message has {length} bytes: at most {MAX_MESSAGE_BYTES} are allowed");
    Status::resource_exhausted(wrong)
}

/// Returns the response to a call that succeeded, with `message` as its body.
pub(super) fn answered(message: &impl Message) -> Response<UnaryBody> {
    let length = message.encoded_len();
    let mut bytes = Vec::with_capacity(HEAD + length);
    bytes.push(0);
    // A response is far below 4 GiB: it has one status for each descriptor of the request, and a
    // request has at most `MAX_MESSAGE_BYTES`.
    bytes.extend_from_slice(&(length as u32).to_be_bytes());
    message.encode_raw(&mut bytes);
    let mut answer = Response::new(UnaryBody::Message(bytes.into()));
    answer.headers_mut().insert(CONTENT_TYPE, GRPC);
    answer
}

/// The body of a response.
#[derive(Debug)]
pub(super) enum UnaryBody {
    /// The message is sent next, and then the trailers with status 0 (OK).
    Message(Bytes),
    /// The trailers with status 0 (OK) are sent next. The message was sent.
    Status,
    /// The message and the trailers were sent.
    End,
    /// The body of another service (health, reflection, or an error).
    Other(tonic::body::Body),
}

impl Body for UnaryBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = match &mut *self {
            Self::Other(body) => return Pin::new(body).poll_frame(cx),
            Self::Message(message) => Frame::data(std::mem::take(message)),
            Self::Status => Frame::trailers(HeaderMap::from_iter([(GRPC_STATUS, OK)])),
            Self::End => return Poll::Ready(None),
        };
        *self = if frame.is_data() { Self::Status } else { Self::End };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Other(body) => body.is_end_stream(),
            Self::Message(_) | Self::Status => false,
            Self::End => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Other(body) => body.size_hint(),
            // The length is in the prefix of the message. gRPC needs no `content-length`.
            Self::Message(_) | Self::Status | Self::End => SizeHint::default(),
        }
    }
}
