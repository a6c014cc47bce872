//! From bytes to the words of a command: arrays of bulk strings, and lines typed by hand.
//!
//! A command is parsed anew from its first byte whenever more of it has come. That costs little,
//! for the bytes of a bulk string are skipped, not read, and there is no state that a split in an
//! odd place could spoil: what is parsed of a prefix never contradicts what is parsed of the whole.

use memchr::memchr;

use super::args::{Args, MAX_ARGS};
use super::inline;
use super::protocol_error::ProtocolError;

/// Bytes of one word, at most.
pub const MAX_BULK: usize = 64 * 1024;

/// Bytes of one word before a token was shown, at most.
pub const MAX_UNAUTHENTICATED_BULK: usize = 4 * 1024;

/// Bytes of one command with all its framing, at most.
pub const MAX_COMMAND: usize = 256 * 1024;

/// Bytes of a command that is a line, at most.
pub const MAX_INLINE: usize = 4 * 1024;

/// Bytes of the line that announces a length, without its first one.
const MAX_LENGTH_LINE: usize = 24;

/// Who sends the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAuth {
    /// Who may charge limits.
    Authenticated,
    /// Who has not shown a token yet.
    Unauthenticated,
}

/// The first command of `input` and how many bytes it takes; `None` until all of it has come.
///
/// Where a line holds quotes, its words are put into `unquoted`.
///
/// # Errors
/// [`ProtocolError`]: nothing that follows can be trusted.
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

/// The number in the line that begins at `from`, and where the next line begins.
#[inline]
fn length(
    input: &[u8],
    from: usize,
    wrong: ProtocolError,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let rest = &input[from..];
    // Nearly all lengths have one digit or two.
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

/// A number as the protocol writes it: no `+`, no leading zero, nothing around it.
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
