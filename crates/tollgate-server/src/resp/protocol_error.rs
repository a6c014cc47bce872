//! Protocol errors: bytes that are not a command.

use std::fmt;

/// A protocol error. The connection is closed after the error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtocolError {
    /// The number of arguments is invalid or too large.
    ArrayLength,
    /// An argument starts with this byte instead of `$`.
    NotABulk(u8),
    /// The length of an argument is invalid or too large.
    BulkLength,
    /// The length of an argument is too large before authentication.
    UnauthenticatedBulk,
    /// An argument does not end at its announced length.
    BulkEnd,
    /// The command is too long.
    CommandTooLong,
    /// The inline command is too long.
    InlineTooLong,
    /// A quote is not closed, or not followed by a space.
    Quotes,
    /// The bytes are HTTP. They come from a browser, or from a client at the wrong port.
    Http,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArrayLength => f.write_str("invalid multibulk length"),
            Self::NotABulk(byte) => write!(f, "expected '$', got '{}'", byte.escape_ascii()),
            Self::BulkLength => f.write_str("invalid bulk length"),
            Self::UnauthenticatedBulk => f.write_str("unauthenticated bulk length"),
            Self::BulkEnd => f.write_str("expected CRLF after a bulk"),
            Self::CommandTooLong => f.write_str("too big command"),
            Self::InlineTooLong => f.write_str("too big inline request"),
            Self::Quotes => f.write_str("unbalanced quotes in request"),
            Self::Http => f.write_str("HTTP request on the Redis listener"),
        }
    }
}

impl std::error::Error for ProtocolError {}
