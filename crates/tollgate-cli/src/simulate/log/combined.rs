//! The common and the combined log format of Apache and nginx, with or without the virtual host at
//! the start.

use std::net::IpAddr;

use super::draft::Draft;
use super::entry::Slot;
use super::malformed::Malformed;
use super::quoted::{End, Quoted, quoted};
use super::request_line;
use super::time::{ClfClock, rfc3339};

/// The fields after the size that the parser reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trailer {
    /// No further fields: the common format.
    Ignored,
    /// The referer and the user agent, if they are present: the combined format.
    RefererAndAgent,
}

/// Parses `[vhost] client ident user [time] "request" status size ["referer" "user agent" …]`.
///
/// A malformed request (`"-"`, binary data) has neither method nor target, but counts as an entry,
/// because the server answered it. A line that ends within its last field also counts as an entry.
pub(super) fn parse(
    line: &[u8],
    trailer: Trailer,
    clock: &mut ClfClock,
    draft: &mut Draft,
) -> Result<(), Malformed> {
    let (head, time, rest) = split_at_time(line, clock)?;
    draft.time = Some(time);
    clients(head, draft)?;
    let rest = request(rest, draft)?;
    let rest = answer(rest, draft)?;
    if trailer == Trailer::RefererAndAgent {
        let rest = trailing(rest, Slot::Referer, draft);
        trailing(rest, Slot::UserAgent, draft);
    }
    Ok(())
}

/// Splits a line into the text before ` [time] `, the time, and the rest. User names may contain
/// brackets, so the first pair of brackets that encloses a time is used.
fn split_at_time<'a>(
    line: &'a [u8],
    clock: &mut ClfClock,
) -> Result<(&'a [u8], u64, &'a [u8]), Malformed> {
    let mut why = Malformed::NoTime;
    for open in memchr::memchr_iter(b'[', line) {
        let text = &line[open + 1..];
        let Some(close) = memchr::memchr(b']', &text[..text.len().min(TIME_LENGTH_MAX)]) else {
            continue;
        };
        let Some(time) = clock.parse(&text[..close]).or_else(|| rfc3339(&text[..close])) else {
            why = Malformed::BadTime;
            continue;
        };
        let head = line[..open].strip_suffix(b" ").ok_or(Malformed::NoClient)?;
        let rest = text[close + 1..].strip_prefix(b" ").ok_or(Malformed::NoRequest)?;
        return Ok((head, time, rest));
    }
    Err(why)
}

/// The number of bytes after `[` within which the time has to end.
const TIME_LENGTH_MAX: usize = 40;

/// Parses `[vhost] client ident user`. The user may contain spaces.
fn clients(head: &[u8], draft: &mut Draft) -> Result<(), Malformed> {
    let (first, rest) = word(head).ok_or(Malformed::NoClient)?;
    let (second, after) = word(rest).ok_or(Malformed::NoClient)?;
    // Four words or more: the first is a virtual host, or the user name has spaces.
    let (client, rest) = match word(after) {
        Some(_) if is_vhost(first, second) => {
            draft.put(Slot::Host, first);
            (second, after)
        }
        _ => (first, rest),
    };
    let (_ident, user) = word(rest).ok_or(Malformed::NoClient)?;
    if client.is_empty() || user.is_empty() {
        return Err(Malformed::NoClient);
    }
    draft.put(Slot::Client, client);
    if user != b"\"\"" {
        draft.put(Slot::User, user);
    }
    Ok(())
}

/// Splits the text at the first space. Returns `None` if there is no space.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', text)?;
    Some((&text[..space], &text[space + 1..]))
}

/// Returns whether a line with four words before the time starts with the requested host. `first`
/// and `second` are the first two of these words. If `first` is not the host, it is the client.
fn is_vhost(first: &[u8], second: &[u8]) -> bool {
    is_address(second) || second != b"-" && !is_address(first) && ends_with_port(first)
}

fn ends_with_port(host: &[u8]) -> bool {
    let colon = memchr::memrchr(b':', host);
    colon.is_some_and(|at| at + 1 < host.len() && host[at + 1..].iter().all(u8::is_ascii_digit))
}

fn is_address(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

fn request<'a>(text: &'a [u8], draft: &mut Draft) -> Result<&'a [u8], Malformed> {
    let field =
        quoted(text).filter(|field| field.end == End::Closed).ok_or(Malformed::NoRequest)?;
    // The line is split before it is unescaped, because no escape sequence contains a space, and
    // the version at the end contains no escape sequence.
    if let Some((method, target)) = request_line::split(field.raw) {
        draft.put(Slot::Method, method);
        let target = Quoted { raw: target, ..field };
        draft.put_with(Slot::Target, |out| target.append_to(out));
    }
    Ok(field.rest)
}

/// Parses ` status size`, and returns the rest.
fn answer<'a>(text: &'a [u8], draft: &mut Draft) -> Result<&'a [u8], Malformed> {
    let text = text.strip_prefix(b" ").ok_or(Malformed::BadStatus)?;
    let (status, text) = word(text).ok_or(Malformed::BadStatus)?;
    let (bytes, rest) = match memchr::memchr(b' ', text) {
        Some(space) => text.split_at(space),
        None => (text, &[][..]),
    };
    draft.status = status_code(status).ok_or(Malformed::BadStatus)?;
    draft.bytes = Some(size(bytes).ok_or(Malformed::BadBytes)?);
    Ok(rest)
}

/// Parses a status of three digits, or `-`, which means that there is no status. Returns 0 for `-`,
/// and `None` for any other text.
pub(super) fn status_code(text: &[u8]) -> Option<u16> {
    match *text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Some(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
        }
        [b'-'] => Some(0),
        _ => None,
    }
}

/// Parses the size of a response, or `-`, which means that the response has no body.
fn size(text: &[u8]) -> Option<u64> {
    match text {
        b"-" => Some(0),
        [] => None,
        digits => digits.iter().try_fold(0u64, |value, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            value.checked_mul(10)?.checked_add(digit)
        }),
    }
}

/// Sets `slot` to the quoted field after a space, if there is one, and returns the rest.
fn trailing<'a>(text: &'a [u8], slot: Slot, draft: &mut Draft) -> &'a [u8] {
    let Some(field) = text.strip_prefix(b" ").and_then(quoted) else {
        return &[];
    };
    draft.put_with(slot, |out| field.append_to(out));
    field.rest
}
