//! Quoted fields as Apache and nginx write them: `"…"`, with escapes such as `\"`, `\\`, `\n` and
//! `\x16`.

/// A quoted field as the line contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quoted<'a> {
    /// The text between the quotes, still escaped.
    pub(super) raw: &'a [u8],
    /// Whether `raw` contains a backslash.
    pub(super) escapes: Escapes,
    /// Whether the field has a closing quote, or the line ended within the field.
    pub(super) end: End,
    /// The line after the closing quote.
    pub(super) rest: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    None,
    Some,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    CutShort,
}

/// Parses the quoted field at the start of `text`, or returns `None` if `text` does not start with
/// a quote.
///
/// A quote that is neither at the end of the line nor followed by a space is part of the field, so
/// logs of servers that do not escape quotes in a user agent can be read.
pub(super) fn quoted(text: &[u8]) -> Option<Quoted<'_>> {
    let inner = text.strip_prefix(b"\"")?;
    let mut escapes = Escapes::None;
    let mut at = 0;
    while let Some(found) = inner.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if inner[at] == b'\\' {
            escapes = Escapes::Some;
            at += 2;
        } else if matches!(inner.get(at + 1), None | Some(b' ')) {
            return Some(Quoted {
                raw: &inner[..at],
                escapes,
                end: End::Closed,
                rest: &inner[at + 1..],
            });
        } else {
            at += 1;
        }
    }
    Some(Quoted { raw: inner, escapes, end: End::CutShort, rest: &[] })
}

impl Quoted<'_> {
    /// Appends the field's text to `out`, with its escapes decoded. Decoding never makes the text
    /// longer than `raw`.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        match self.escapes {
            Escapes::None => out.extend_from_slice(self.raw),
            Escapes::Some => unescape(self.raw, out),
        }
    }
}

/// Appends `raw` with its escapes resolved. Invalid escapes are kept unchanged.
fn unescape(mut raw: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr(b'\\', raw) {
        out.extend_from_slice(&raw[..at]);
        let (byte, length) = match raw[at + 1..] {
            [b'x', high, low, ..] => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (b'\\', 1),
            },
            [letter, ..] => simple(letter).map_or((b'\\', 1), |byte| (byte, 2)),
            [] => (b'\\', 1),
        };
        out.push(byte);
        raw = &raw[at + length..];
    }
    out.extend_from_slice(raw);
}

fn simple(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        _ => return None,
    })
}

/// Returns the value of a hexadecimal digit, or `None` if `digit` is another character.
pub(super) fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &[u8]) -> (Vec<u8>, End, &[u8]) {
        let field = quoted(line).unwrap();
        let mut out = Vec::new();
        field.append_to(&mut out);
        assert!(out.len() <= field.raw.len());
        (out, field.end, field.rest)
    }

    #[test]
    fn a_field_ends_at_its_closing_quote() {
        assert_eq!(
            text(br#""GET / HTTP/1.1" 200"#),
            (b"GET / HTTP/1.1".to_vec(), End::Closed, &b" 200"[..])
        );
        assert_eq!(text(br#""""#), (Vec::new(), End::Closed, &b""[..]));
        assert_eq!(text(br#""a "b" c""#), (br#"a "b"#.to_vec(), End::Closed, &br#" c""#[..]));
        assert_eq!(text(br#""a="b"; c" d"#), (br#"a="b"; c"#.to_vec(), End::Closed, &b" d"[..]));
        assert_eq!(quoted(b"a"), None);
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(text(br#""a\"b\\" x"#).0, br#"a"b\"#);
        assert_eq!(text(br#""\x16\x03\x01\n\t" x"#).0, b"\x16\x03\x01\n\t");
        assert_eq!(text(br#""\q\x1\xzz" x"#).0, br"\q\x1\xzz");
    }

    #[test]
    fn a_line_may_end_within_a_field() {
        assert_eq!(text(br#""abc"#), (b"abc".to_vec(), End::CutShort, &b""[..]));
        assert_eq!(text(br#""abc\"#), (br"abc\".to_vec(), End::CutShort, &b""[..]));
        assert_eq!(text(br#""abc\""#), (br#"abc""#.to_vec(), End::CutShort, &b""[..]));
    }
}
