//! Inline commands, for example from telnet: words separated by spaces, with quotes as in Redis.

use super::args::{Args, MAX_ARGS};
use super::protocol_error::ProtocolError;

/// The first words of HTTP requests, and of the header field that a browser always sends.
const HTTP: [&[u8]; 11] = [
    b"CONNECT", b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"PATCH", b"POST", b"PRI", b"PUT",
    b"TRACE", b"HOST:",
];

/// Returns whether `line` belongs to an HTTP request. A web page could make a browser send an HTTP
/// request to this listener, with commands in its body.
pub(super) fn is_http(line: &[u8]) -> bool {
    let first = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    HTTP.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Splits `line` into its words. If `line` contains quotes, the unquoted words are written to
/// `unquoted`.
pub(super) fn split_words<'a>(
    line: &'a [u8],
    unquoted: &'a mut Vec<u8>,
) -> Result<Args<'a>, ProtocolError> {
    if line.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        return unquote(line, unquoted);
    }
    let args = line.split(|byte| is_space(*byte)).filter(|word| !word.is_empty());
    let args: Args<'a> = args.take(MAX_ARGS + 1).collect();
    if args.len() > MAX_ARGS { Err(ProtocolError::ArrayLength) } else { Ok(args) }
}

/// Returns whether the byte is whitespace in C: ASCII whitespace and the vertical tab.
const fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn unquote<'a>(line: &[u8], text: &'a mut Vec<u8>) -> Result<Args<'a>, ProtocolError> {
    text.clear();
    let mut ends = Vec::new();
    let mut rest = line;
    loop {
        rest = trim_start(rest);
        if rest.is_empty() {
            break;
        }
        if ends.len() == MAX_ARGS {
            return Err(ProtocolError::ArrayLength);
        }
        rest = word(rest, text)?;
        ends.push(text.len());
    }
    let mut start = 0;
    let word = |end: usize| &text[std::mem::replace(&mut start, end)..end];
    Ok(ends.into_iter().map(word).collect())
}

fn trim_start(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    &text[start..]
}

/// Appends the word at the start of `rest` to `text` and returns the remaining bytes.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    while let [byte, after @ ..] = rest {
        match *byte {
            byte if is_space(byte) => break,
            quote @ (b'"' | b'\'') => {
                rest = quoted(after, quote, text)?;
                return match rest.first() {
                    Some(byte) if !is_space(*byte) => Err(ProtocolError::Quotes),
                    _ => Ok(rest),
                };
            }
            byte => {
                text.push(byte);
                rest = after;
            }
        }
    }
    Ok(rest)
}

/// Appends the text before the closing `quote` to `text` and returns the remaining bytes.
fn quoted<'a>(
    mut rest: &'a [u8],
    quote: u8,
    text: &mut Vec<u8>,
) -> Result<&'a [u8], ProtocolError> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(ProtocolError::Quotes),
            [byte, after @ ..] if *byte == quote => {
                let _ = byte;
                return Ok(after);
            }
            [b'\\', b'\'', after @ ..] if quote == b'\'' => (b'\'', after),
            [b'\\', b'x', high, low, after @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex(*high) << 4 | hex(*low), after)
            }
            [b'\\', escaped, after @ ..] if quote == b'"' => (unescaped(*escaped), after),
            [byte, after @ ..] => (*byte, after),
        };
        text.push(byte);
        rest = after;
    }
}

const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

const fn unescaped(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Option<Vec<String>> {
        let mut unquoted = Vec::new();
        let args = split_words(line.as_bytes(), &mut unquoted).ok()?;
        Some(args.iter().map(|word| word.escape_ascii().to_string()).collect())
    }

    #[test]
    fn words_stand_between_spaces_and_quotes_keep_them_together() {
        for (line, expected) in [
            ("", &[][..]),
            ("  \t ", &[]),
            ("PING", &["PING"]),
            ("  ECHO   a\tb ", &["ECHO", "a", "b"]),
            ("ECHO \"a b\" c", &["ECHO", "a b", "c"]),
            ("ECHO 'a \"b'", &["ECHO", "a \\\"b"]),
            ("ECHO \"\"", &["ECHO", ""]),
            ("ECHO \"\\x00\\xfF\\n\\q\"", &["ECHO", "\\x00\\xff\\nq"]),
            ("ECHO '\\x00\\''", &["ECHO", "\\\\x00\\'"]),
            ("ECHO a\"b c\"", &["ECHO", "ab c"]),
        ] {
            assert_eq!(
                split(line).as_deref(),
                Some(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                "{line}"
            );
        }
    }

    #[test]
    fn a_quote_is_closed_and_ends_its_word() {
        for line in ["ECHO \"a", "ECHO 'a", "ECHO \"a\"b", "ECHO 'a'b", "ECHO \"a\\\"", "\""] {
            assert_eq!(split(line), None, "{line}");
        }
        assert_eq!(split(&"a ".repeat(MAX_ARGS)).map(|args| args.len()), Some(MAX_ARGS));
        assert_eq!(split(&"a ".repeat(MAX_ARGS + 1)), None);
        assert_eq!(split(&"'a' ".repeat(MAX_ARGS + 1)), None);
    }

    #[test]
    fn http_is_known_by_its_first_word() {
        for line in ["GET / HTTP/1.1", "post /", "Host: a", "OPTIONS *", "get"] {
            assert!(is_http(line.as_bytes()), "{line}");
        }
        for line in ["GETX", "PING", "", " ", "hostess"] {
            assert!(!is_http(line.as_bytes()), "{line}");
        }
    }
}
