//! Bytes that are no command.

use std::fmt;

/// Bytes that are no command. What is sent of it ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtocolError {
    /// The number of words is none, or too large.
    ArrayLength,
    /// A word is announced by another byte than `$`.
    NotABulk(u8),
    /// The length of a word is none, or too large.
    BulkLength,
    /// The length of a word is too large for who has not shown a token.
    UnauthenticatedBulk,
    /// A word does not end where it was announced to.
    BulkEnd,
    /// All words together are too long.
    CommandTooLong,
    /// A line does not end.
    InlineTooLong,
    /// A quote is not closed, or followed by what is no space.
    Quotes,
    /// It is HTTP: a browser that was sent here, or a client at the wrong port.
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
            Self::Http => f.write_str("this is not HTTP"),
        }
    }
}

impl std::error::Error for ProtocolError {}
