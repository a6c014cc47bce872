//! The parser from bytes to the arguments of a command: arrays of bulk strings, and inline
//! commands.
//!
//! Whenever more bytes of a command have arrived, the command is parsed again from its first byte.
//! Parsing again is cheap, because the parser skips the bytes of a bulk string without reading
//! them. The parser keeps no state between calls, so its result does not depend on the way in which
//! the input is split: the result for a prefix never contradicts the result for the whole input.
//!
//! The parser is written by hand, because the parser of a client library, such as `redis-protocol`,
//! trusts its server and reads values of any length. This parser bounds each part of a command
//! before the part has arrived. A command has at most 64 arguments. Each argument has at most 4 KiB
//! until the client has sent a valid token, and at most 64 KiB after that.

use memchr::memchr;

use super::args::{Args, MAX_ARGS};
use super::inline;
use super::protocol_error::ProtocolError;

/// The longest bulk string, in bytes.
pub const MAX_BULK: usize = 64 * 1024;

/// The longest bulk string before authentication, in bytes.
pub const MAX_UNAUTHENTICATED_BULK: usize = 4 * 1024;

/// The longest command with its framing, in bytes.
pub const MAX_COMMAND: usize = 256 * 1024;

/// The longest inline command, in bytes.
pub const MAX_INLINE: usize = 4 * 1024;

/// The longest line that contains a length, in bytes, without the first byte of the line.
const MAX_LENGTH_LINE: usize = 24;

/// The authentication state of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAuth {
    /// The client may charge limits.
    Authenticated,
    /// The client has not sent a valid token yet.
    Unauthenticated,
}

/// Returns the first command of `input` and its length in bytes, or `None` if the command is
/// incomplete.
///
/// If an inline command contains quotes, its unquoted arguments are written to `unquoted`.
///
/// # Errors
/// [`ProtocolError`] if the bytes are not a command. All later bytes cannot be interpreted either.
pub(super) fn parse<'a>(
    input: &'a [u8],
    sender: ClientAuth,
    unquoted: &'a mut Vec<u8>,
) -> Result<Option<(Args<'a>, usize)>, ProtocolError> {
    match input.first() {
        None => Ok(None),
        Some(b'*') => array(input, sender),
        Some(_) => line(input, unquoted),
    }
}

fn array(input: &[u8], sender: ClientAuth) -> Result<Option<(Args<'_>, usize)>, ProtocolError> {
    let Some((count, mut at)) = length(input, 1, ProtocolError::ArrayLength)? else {
        return Ok(None);
    };
    if count > MAX_ARGS as i64 {
        return Err(ProtocolError::ArrayLength);
    }
    let mut args = Args::new();
    for _ in 0..count {
        match input.get(at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(other) => return Err(ProtocolError::NotABulk(*other)),
        }
        let Some((length, start)) = length(input, at + 1, ProtocolError::BulkLength)? else {
            return Ok(None);
        };
        let end = start + bulk_length(length, sender)?;
        if end > MAX_COMMAND {
            return Err(ProtocolError::CommandTooLong);
        }
        match input.get(end..end + 2) {
            None => return Ok(None),
            Some(b"\r\n") => args.push(&input[start..end]),
            Some(_) => return Err(ProtocolError::BulkEnd),
        }
        at = end + 2;
    }
    Ok(Some((args, at)))
}

fn bulk_length(length: i64, sender: ClientAuth) -> Result<usize, ProtocolError> {
    let length = usize::try_from(length).map_err(|_| ProtocolError::BulkLength)?;
    match sender {
        _ if length > MAX_BULK => Err(ProtocolError::BulkLength),
        ClientAuth::Unauthenticated if length > MAX_UNAUTHENTICATED_BULK => {
            Err(ProtocolError::UnauthenticatedBulk)
        }
        _ => Ok(length),
    }
}

/// Returns the number in the line that starts at `from`, and the index at which the next line
/// starts. Returns `None` if the line is incomplete.
///
/// # Errors
/// `wrong` if the line does not contain a number.
#[inline]
fn length(
    input: &[u8],
    from: usize,
    wrong: ProtocolError,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let rest = &input[from..];
    // Nearly all lengths have one or two digits.
    match *rest {
        [one @ b'1'..=b'9', b'\r', b'\n', ..] => {
            return Ok(Some((i64::from(one - b'0'), from + 3)));
        }
        [ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..] => {
            return Ok(Some((i64::from(ten - b'0') * 10 + i64::from(one - b'0'), from + 4)));
        }
        _ => {}
    }
    let line = &rest[..rest.len().min(MAX_LENGTH_LINE)];
    let Some(end) = line.iter().position(|byte| *byte == b'\r') else {
        return if line.len() == MAX_LENGTH_LINE { Err(wrong) } else { Ok(None) };
    };
    match rest.get(end + 1) {
        None => Ok(None),
        Some(b'\n') => match integer(&line[..end]) {
            Some(number) => Ok(Some((number, from + end + 2))),
            None => Err(wrong),
        },
        Some(_) => Err(wrong),
    }
}

/// Parses a number as the protocol defines it: no `+`, no leading zeros, no spaces. Returns `None`
/// for any other text.
fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && text.len() > 1) {
        return None;
    }
    let number = digits.iter().try_fold(0_i64, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })?;
    Some(if text.len() > digits.len() { -number } else { number })
}

fn line<'a>(
    input: &'a [u8],
    unquoted: &'a mut Vec<u8>,
) -> Result<Option<(Args<'a>, usize)>, ProtocolError> {
    let Some(end) = memchr(b'\n', &input[..input.len().min(MAX_INLINE)]) else {
        let is_over = input.len() >= MAX_INLINE;
        return if is_over { Err(ProtocolError::InlineTooLong) } else { Ok(None) };
    };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    if inline::is_http(line) {
        return Err(ProtocolError::Http);
    }
    Ok(Some((inline::split_words(line, unquoted)?, end + 1)))
}

#[cfg(test)]
#[path = "frame/tests.rs"]
mod tests;
