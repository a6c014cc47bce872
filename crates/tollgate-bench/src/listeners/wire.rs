//! The bytes on a connection: encoding of requests and parsing of answers.

mod charge;
mod grpc;
mod http;
mod resp;

use std::error::Error;
use std::fmt;

pub use charge::DIMENSION;
pub use grpc::{Envoy, Throttle, encoded};

/// The burst of every contender's token bucket. No run uses it up.
pub const BURST: u32 = 1_000_000;
/// The number of tokens that are added to the bucket in an hour.
pub const COUNT: u32 = 1_000_000;

/// The protocol of a contender.
#[derive(Clone, Copy, Debug)]
pub enum Wire {
    /// HTTP/1.1 with requests of this kind.
    Http(HttpCall),
    /// JSON over HTTP/2 with requests of this kind.
    Http2(JsonCall),
    /// gRPC with requests of this kind.
    Grpc(GrpcCall),
    /// The Redis protocol, with `THROTTLE`.
    Resp,
    /// The Redis protocol, with `TG.CHARGE` on the limit of this name.
    Charge(&'static str),
}

/// A call over HTTP/1.1.
#[derive(Clone, Copy, Debug)]
pub struct HttpCall {
    /// Returns the complete request for a subject.
    pub request: fn(&str) -> String,
    /// A text that only the body of an admitting response contains.
    pub admitted: &'static str,
}

/// A call with a JSON document over HTTP/2.
#[derive(Clone, Copy, Debug)]
pub struct JsonCall {
    /// The path.
    pub path: &'static str,
    /// Returns the document for a subject.
    pub body: fn(&str) -> String,
    /// A text that only the body of an admitting response contains.
    pub admitted: &'static str,
}

/// A unary call of a service.
#[derive(Clone, Copy, Debug)]
pub struct GrpcCall {
    /// The path of the method.
    pub path: &'static str,
    /// Returns the encoded message for a subject.
    pub message: fn(&str) -> Vec<u8>,
}

/// An answer at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The length of the answer in bytes.
    pub length: usize,
    /// Whether the subject is admitted.
    pub decision: Decision,
}

/// Whether a subject is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is admitted.
    Admitted,
    /// The request is refused. That is an error in these benchmarks.
    Refused,
}

/// An answer that is invalid for its protocol.
#[derive(Debug)]
pub struct Unreadable(String);

impl Unreadable {
    pub(super) fn of(bytes: &[u8]) -> Self {
        /// The most bytes of an answer that an error repeats.
        const MAX_SHOWN: usize = 400;
        Self(String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SHOWN)]).into_owned())
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answered {:?}", self.0)
    }
}

impl Error for Unreadable {}

impl Wire {
    /// Appends the request for `subject` to `out`. For gRPC and HTTP/2, appends only the body,
    /// because the connection adds the frames.
    pub fn write(&self, subject: &str, out: &mut Vec<u8>) {
        match self {
            Self::Http(call) => out.extend_from_slice((call.request)(subject).as_bytes()),
            Self::Http2(call) => out.extend_from_slice((call.body)(subject).as_bytes()),
            Self::Grpc(call) => grpc::frame(&(call.message)(subject), out),
            Self::Resp => resp::write(subject, out),
            Self::Charge(limit) => charge::write(limit, subject, out),
        }
    }

    /// Parses the answer at the start of `bytes`. Returns `None` while the answer is incomplete.
    ///
    /// # Errors
    /// [`Unreadable`] if the answer is an error, or does not fit the request.
    pub fn read(&self, bytes: &[u8]) -> Result<Option<Answer>, Unreadable> {
        match self {
            Self::Http(call) => http::read(bytes, call.admitted),
            Self::Http2(call) => Ok(Some(http::read_body(bytes, call.admitted))),
            Self::Grpc(_) => grpc::read(bytes),
            Self::Resp => resp::read(bytes),
            Self::Charge(_) => charge::read(bytes),
        }
    }
}
