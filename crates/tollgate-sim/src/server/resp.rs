//! The Redis protocol of the simulated servers: commands as arrays of strings, and replies.

use std::fmt;

/// The error for a command that is not an array of strings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Malformed;

/// The words of a command.
pub(crate) type Args<'b> = Vec<&'b [u8]>;

/// A reply of a server.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Status(&'static str),
    Error(String),
    Number(i64),
    Text(Vec<u8>),
    Nil,
    List(Vec<Self>),
    /// A push message of RESP3, which is not the reply to a command.
    Push(Vec<Self>),
    /// The bytes of a reply in another protocol, such as memcached's.
    Raw(Vec<u8>),
}

/// Writes the kind of the reply. For an error, writes the error.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(text) => f.write_str(text),
            Self::Error(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Text(bytes) | Self::Raw(bytes) => write!(f, "({} bytes)", bytes.len()),
            Self::Nil => f.write_str("(nil)"),
            Self::List(items) | Self::Push(items) => write!(f, "({} items)", items.len()),
        }
    }
}

/// Returns the first command in `bytes` and its length, or `None` while the command is incomplete.
pub(crate) fn command(bytes: &[u8]) -> Result<Option<(Args<'_>, usize)>, Malformed> {
    let Some((count, mut at)) = number(bytes, 0, b'*')? else { return Ok(None) };
    let mut args = Vec::with_capacity(count.min(1_024));
    for _ in 0..count {
        let Some((length, from)) = number(bytes, at, b'$')? else { return Ok(None) };
        let end = from + length;
        if bytes.len() < end + 2 {
            return Ok(None);
        }
        args.push(&bytes[from..end]);
        at = end + 2;
    }
    Ok(Some((args, at)))
}

/// Parses the line at `at`, which consists of `sign` and a number. Returns the number, and the
/// start of the next line. Returns `None` while the line is incomplete.
fn number(bytes: &[u8], at: usize, sign: u8) -> Result<Option<(usize, usize)>, Malformed> {
    let Some((first, rest)) = bytes.get(at..).and_then(<[u8]>::split_first) else {
        return Ok(None);
    };
    if *first != sign {
        return Err(Malformed);
    }
    let mut number: usize = 0;
    for (place, byte) in rest.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                let digit = usize::from(byte - b'0');
                number = number.checked_mul(10).ok_or(Malformed)?.saturating_add(digit);
            }
            b'\r' => {
                let next = at + 1 + place + 2;
                return Ok((next <= bytes.len()).then_some((number, next)));
            }
            _ => return Err(Malformed),
        }
    }
    Ok(None)
}

impl Reply {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into().into_bytes())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Status(text) => write_line(b'+', text.as_bytes(), out),
            Self::Error(text) => write_line(b'-', text.as_bytes(), out),
            Self::Number(number) => {
                write_line(b':', itoa::Buffer::new().format(*number).as_bytes(), out);
            }
            Self::Nil => out.extend_from_slice(b"$-1\r\n"),
            Self::Text(bytes) => {
                write_count(b'$', bytes.len(), out);
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::List(items) => write_items(b'*', items, out),
            Self::Push(items) => write_items(b'>', items, out),
            Self::Raw(bytes) => out.extend_from_slice(bytes),
        }
    }
}

fn write_line(sign: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(sign);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn write_count(sign: u8, count: usize, out: &mut Vec<u8>) {
    write_line(sign, itoa::Buffer::new().format(count).as_bytes(), out);
}

fn write_items(sign: u8, items: &[Reply], out: &mut Vec<u8>) {
    write_count(sign, items.len(), out);
    items.iter().for_each(|item| item.write(out));
}
