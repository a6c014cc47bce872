//! What is said on a connection: requests as bytes, and answers out of bytes.

mod charge;
mod grpc;
mod http;
mod resp;

use std::error::Error;
use std::fmt;

pub use charge::DIMENSION;
pub use grpc::{Envoy, Throttle, encoded};

/// The bucket that every contender counts with: nobody runs out of it.
pub const BURST: u32 = 1_000_000;
/// Tokens that come back to it in an hour.
pub const COUNT: u32 = 1_000_000;

/// How a contender is spoken to.
#[derive(Clone, Copy, Debug)]
pub enum Wire {
    /// HTTP/1.1, as these calls.
    Http(HttpCall),
    /// gRPC, as these calls.
    Grpc(GrpcCall),
    /// The Redis protocol, by `THROTTLE`.
    Resp,
    /// The Redis protocol, by `TG.CHARGE` of the limit of this name.
    Charge(&'static str),
}

/// A call over HTTP/1.1.
#[derive(Clone, Copy, Debug)]
pub struct HttpCall {
    /// The whole request for a subject.
    pub request: fn(&str) -> String,
    /// What the body of an answer holds if the subject may pass.
    pub admitted: &'static str,
}

/// A unary call of a service.
#[derive(Clone, Copy, Debug)]
pub struct GrpcCall {
    /// The path of the method.
    pub path: &'static str,
    /// The message for a subject, encoded.
    pub message: fn(&str) -> Vec<u8>,
}

/// An answer at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How many of the bytes are its.
    pub length: usize,
    /// Whether the subject may pass.
    pub decision: Decision,
}

/// Whether a subject may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Admitted,
    /// It may not: no contender has a reason for that here.
    Refused,
}

/// An answer that is none of this wire.
#[derive(Debug)]
pub struct Unreadable(String);

impl Unreadable {
    pub(super) fn of(bytes: &[u8]) -> Self {
        /// Longer ones are not told whole.
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
    /// Writes the request for `subject` behind `out`. A call of gRPC is its message, as frames are
    /// its connection's business.
    pub fn write(&self, subject: &str, out: &mut Vec<u8>) {
        match self {
            Self::Http(call) => out.extend_from_slice((call.request)(subject).as_bytes()),
            Self::Grpc(call) => grpc::frame(&(call.message)(subject), out),
            Self::Resp => resp::write(subject, out),
            Self::Charge(limit) => charge::write(limit, subject, out),
        }
    }

    /// The answer at the start of `bytes`; `None` while it is not whole.
    ///
    /// # Errors
    /// [`Unreadable`] if it is an error, or nothing that was asked for.
    pub fn read(&self, bytes: &[u8]) -> Result<Option<Answer>, Unreadable> {
        match self {
            Self::Http(call) => http::read(bytes, call.admitted),
            Self::Grpc(_) => grpc::read(bytes),
            Self::Resp => resp::read(bytes),
            Self::Charge(_) => charge::read(bytes),
        }
    }
}
