//! The protocols of the contenders: encodes requests and parses answers.

mod charge;
mod grpc;
mod http;
mod resp;

use std::error::Error;
use std::fmt;

pub use charge::DIMENSION;
pub use grpc::{Envoy, Throttle, encoded};

/// The burst of the token bucket that every contender uses. It is so large that no run uses it up.
pub const BURST: u32 = 1_000_000;
/// The number of tokens that arrive per hour in the token bucket of every contender.
pub const COUNT: u32 = 1_000_000;

/// The protocol of a contender.
#[derive(Clone, Copy, Debug)]
pub enum Wire {
    /// HTTP/1.1, with the requests that the value defines.
    Http(HttpCall),
    /// JSON over HTTP/2, with the requests that the value defines.
    Http2(JsonCall),
    /// gRPC, with the requests that the value defines.
    Grpc(GrpcCall),
    /// The Redis protocol, with the command `THROTTLE`.
    Resp,
    /// The Redis protocol, with the command `TG.CHARGE` on the limit of this name.
    Charge(&'static str),
}

/// The requests and the responses of a contender over HTTP/1.1.
#[derive(Clone, Copy, Debug)]
pub struct HttpCall {
    /// A function that returns the complete request for a subject.
    pub request: fn(&str) -> String,
    /// A text that the body of a response contains if and only if the request is admitted.
    pub admitted: &'static str,
}

/// The requests and the responses of a contender with JSON over HTTP/2.
#[derive(Clone, Copy, Debug)]
pub struct JsonCall {
    /// The path of the requests.
    pub path: &'static str,
    /// A function that returns the JSON document for a subject.
    pub body: fn(&str) -> String,
    /// A text that the body of a response contains if and only if the request is admitted.
    pub admitted: &'static str,
}

/// The unary calls of a contender over gRPC.
#[derive(Clone, Copy, Debug)]
pub struct GrpcCall {
    /// The path of the gRPC method.
    pub path: &'static str,
    /// A function that returns the encoded message for a subject.
    pub message: fn(&str) -> Vec<u8>,
}

/// An answer that was parsed from the start of the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The length of the answer in bytes.
    pub length: usize,
    /// Whether the request is admitted.
    pub decision: Decision,
}

/// Whether a request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is admitted.
    Admitted,
    /// The request is refused, which is an error in these benchmarks.
    Refused,
}

/// An answer that is invalid for its protocol.
#[derive(Debug)]
pub struct Unreadable(String);

impl Unreadable {
    pub(super) fn of(bytes: &[u8]) -> Self {
        /// The largest number of bytes of an answer that an error message contains.
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
    /// Appends the request for `subject` to `out`. For gRPC and HTTP/2, only the body is appended,
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
    /// [`Unreadable`] if the answer is an error, or is not valid for the request.
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
