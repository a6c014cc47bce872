//! The replies of a server, parsed from untrusted bytes.

use super::command::MAX_VALUE;
use super::stats::Stats;

/// The longest line of a reply, in bytes.
const MAX_LINE: usize = 2_048;

/// The most bytes of the reply to `stats`.
const MAX_STATS: usize = 64 << 10;

/// The most bytes of one reply. A longer reply is an error.
pub(crate) const MAX_REPLY: usize = MAX_LINE + MAX_VALUE + 2;

/// The type of reply that a command expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The reply to a meta command. The reply repeats the number `opaque` of the command.
    Meta { opaque: u32 },
    /// The reply to `stats`.
    Stats,
}

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The item exists and was read.
    Value(Stored),
    /// The item does not exist.
    Missing,
    /// The command was executed.
    Done,
    /// The command was not executed: the item has another token, or already exists.
    Conflict,
    /// The server has no memory for the item, or the item is larger than the server accepts.
    Full,
    /// The server rejected the command as unknown or malformed.
    Refused,
    /// The server's statistics.
    Stats(Stats),
}

/// An item as it was read from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) value: Vec<u8>,
    pub(crate) flags: u32,
    /// The token of the item's version. Every change gives the item a new token.
    pub(crate) token: u64,
}

/// The result of parsing the reply at the start of the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A complete reply, and its length in bytes.
    Complete(Reply, usize),
    /// The reply is not complete, so more bytes are needed.
    Partial,
}

/// The error for bytes that are not a valid reply to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Parses the first reply in `input`. `expected` is the type of reply that the command expects.
pub(crate) fn parse(input: &[u8], expected: Expected) -> Result<Parsed, Malformed> {
    match expected {
        Expected::Stats => parse_stats(input),
        Expected::Meta { opaque } => parse_meta(input, opaque),
    }
}

fn parse_meta(input: &[u8], opaque: u32) -> Result<Parsed, Malformed> {
    let Some((line, after)) = first_line(input)? else { return Ok(Parsed::Partial) };
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let reply = match words.next().ok_or(Malformed)? {
        b"VA" => return parse_value(input, after, words, opaque),
        b"HD" => Reply::Done,
        b"EN" | b"NF" => Reply::Missing,
        b"EX" | b"NS" => Reply::Conflict,
        // Error replies do not repeat the number `opaque`.
        b"SERVER_ERROR" => return Ok(Parsed::Complete(Reply::Full, after)),
        b"ERROR" | b"CLIENT_ERROR" => return Ok(Parsed::Complete(Reply::Refused, after)),
        _ => return Err(Malformed),
    };
    // Server versions differ in whether the reply for a missing item repeats the number `opaque`.
    let repeated = Flags::read(words)?.opaque;
    let is_bare_miss = repeated.is_none() && reply == Reply::Missing;
    if repeated != Some(opaque) && !is_bare_miss {
        return Err(Malformed);
    }
    Ok(Parsed::Complete(reply, after))
}

/// Parses the value that follows the first line of the reply. `after` is the length of the first
/// line with its line end, and `words` are the words after the name of the reply.
fn parse_value<'a>(
    input: &[u8],
    after: usize,
    mut words: impl Iterator<Item = &'a [u8]>,
    opaque: u32,
) -> Result<Parsed, Malformed> {
    let length = number(words.next().ok_or(Malformed)?)?;
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_VALUE);
    let length = length.ok_or(Malformed)?;
    let flags = Flags::read(words)?;
    let (Some(token), Some(client), true) =
        (flags.token, flags.client, flags.opaque == Some(opaque))
    else {
        return Err(Malformed);
    };
    let Some(body) = input.get(after..after + length + 2) else { return Ok(Parsed::Partial) };
    let (value, end) = body.split_at(length);
    if end != b"\r\n" {
        return Err(Malformed);
    }
    let stored = Stored { value: value.to_vec(), flags: client, token };
    Ok(Parsed::Complete(Reply::Value(stored), after + length + 2))
}

fn parse_stats(input: &[u8]) -> Result<Parsed, Malformed> {
    let mut stats = Stats::default();
    let mut read = 0;
    while read <= MAX_STATS {
        let Some((line, length)) = first_line(&input[read..])? else { return Ok(Parsed::Partial) };
        read += length;
        match line {
            b"END" => return Ok(Parsed::Complete(Reply::Stats(stats), read)),
            b"ERROR" => return Ok(Parsed::Complete(Reply::Refused, read)),
            _ if line.starts_with(b"CLIENT_ERROR") || line.starts_with(b"SERVER_ERROR") => {
                return Ok(Parsed::Complete(Reply::Refused, read));
            }
            _ => stats.observe(line.strip_prefix(b"STAT ").ok_or(Malformed)?),
        }
    }
    Err(Malformed)
}

/// Returns the first line without its line end, and the length of the line including its line end.
/// Returns `None` if the line is not complete yet.
fn first_line(input: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    let searched = &input[..input.len().min(MAX_LINE)];
    match searched.iter().position(|byte| *byte == b'\n') {
        Some(end) => {
            let line = searched[..end].strip_suffix(b"\r").ok_or(Malformed)?;
            Ok(Some((line, end + 1)))
        }
        None if searched.len() == MAX_LINE => Err(Malformed),
        None => Ok(None),
    }
}

/// The flags in a reply, as far as Tollgate uses them. Other flags are ignored.
#[derive(Default)]
struct Flags {
    opaque: Option<u32>,
    token: Option<u64>,
    client: Option<u32>,
}

impl Flags {
    fn read<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Self, Malformed> {
        let mut flags = Self::default();
        for word in words {
            match word.split_first() {
                Some((b'O', rest)) => flags.opaque = Some(narrow(rest)?),
                Some((b'c', rest)) => flags.token = Some(number(rest)?),
                Some((b'f', rest)) => flags.client = Some(narrow(rest)?),
                _ => {}
            }
        }
        Ok(flags)
    }
}

/// Parses a decimal integer without a sign.
fn number(digits: &[u8]) -> Result<u64, Malformed> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Malformed);
    }
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or(Malformed)
}

fn narrow(digits: &[u8]) -> Result<u32, Malformed> {
    u32::try_from(number(digits)?).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const META: Expected = Expected::Meta { opaque: 7 };

    fn whole(input: &str) -> Reply {
        match parse(input.as_bytes(), META) {
            Ok(Parsed::Complete(reply, read)) => {
                assert_eq!(read, input.len(), "{input:?}");
                reply
            }
            other => panic!("{input:?}: {other:?}"),
        }
    }

    #[test]
    fn replies_are_what_they_say() {
        let stored = Stored { value: b"12\r\n3".to_vec(), flags: 9, token: 4 };
        assert_eq!(whole("VA 5 f9 c4 O7\r\n12\r\n3\r\n"), Reply::Value(stored));
        assert_eq!(whole("HD O7\r\n"), Reply::Done);
        assert_eq!(whole("EN\r\n"), Reply::Missing);
        assert_eq!(whole("EN O7\r\n"), Reply::Missing);
        assert_eq!(whole("NF O7\r\n"), Reply::Missing);
        assert_eq!(whole("EX O7 c0\r\n"), Reply::Conflict);
        assert_eq!(whole("NS O7\r\n"), Reply::Conflict);
        assert_eq!(whole("SERVER_ERROR out of memory storing object\r\n"), Reply::Full);
        assert_eq!(whole("CLIENT_ERROR unauthenticated\r\n"), Reply::Refused);
        assert_eq!(whole("ERROR\r\n"), Reply::Refused);
    }

    #[test]
    fn what_answers_another_question_is_no_reply() {
        for input in [
            "HD O8\r\n",
            "HD\r\n",
            "EN O8\r\n",
            "VA 1 f0 c1 O8\r\nx\r\n",
            "VA 1 f0 O7\r\nx\r\n",
            "VA 1 f0 c1 O7\r\nxy\r\n",
            "VA -1 f0 c1 O7\r\n",
            "VA 1048577 f0 c1 O7\r\n",
            "VA 99999999999999999999 f0 c1 O7\r\n",
            "HD O7\n",
            "\r\n",
            "STORED\r\n",
        ] {
            assert_eq!(parse(input.as_bytes(), META), Err(Malformed), "{input:?}");
        }
        let endless = vec![b'H'; MAX_LINE];
        assert_eq!(parse(&endless, META), Err(Malformed));
        assert_eq!(parse(&endless[1..], META), Ok(Parsed::Partial));
    }

    #[test]
    fn statistics_have_an_end() {
        let lines = "STAT pid 1\r\n".repeat(MAX_STATS / 12 + 2);
        assert_eq!(parse(lines.as_bytes(), Expected::Stats), Err(Malformed));
        let text = b"STAT pid 41\r\nSTAT time 1700000000\r\nSTAT uptime 5\r\nEND\r\nHD";
        let Ok(Parsed::Complete(Reply::Stats(stats), read)) = parse(text, Expected::Stats) else {
            panic!("no statistics");
        };
        assert_eq!((read, stats.pid, stats.time), (text.len() - 2, 41, 1_700_000_000));
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(input: Vec<u8>, stats: bool) {
            let _ = parse(&input, if stats { Expected::Stats } else { META });
        }

        #[test]
        fn a_reply_is_whole_exactly_at_its_last_byte(value: Vec<u8>, flags: u32, token: u64) {
            let mut bytes = format!("VA {} f{flags} c{token} O7\r\n", value.len()).into_bytes();
            bytes.extend_from_slice(&value);
            bytes.extend_from_slice(b"\r\n");
            for cut in 0..bytes.len() {
                prop_assert_eq!(parse(&bytes[..cut], META), Ok(Parsed::Partial));
            }
            let reply = Reply::Value(Stored { value, flags, token });
            prop_assert_eq!(parse(&bytes, META), Ok(Parsed::Complete(reply, bytes.len())));
        }
    }
}
