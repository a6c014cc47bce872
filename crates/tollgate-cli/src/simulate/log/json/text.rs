//! JSON strings and their escapes.

use std::borrow::Cow;

use super::super::quoted::hex;

/// A JSON string as it is written between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text<'a> {
    raw: &'a [u8],
}

impl<'a> Text<'a> {
    /// Parses the string whose opening quote precedes `rest`. Returns the string with the number of
    /// bytes of `rest` up to and including the closing quote, or `None` if there is no closing
    /// quote.
    pub(super) fn before_quote(rest: &'a [u8]) -> Option<(Self, usize)> {
        let mut at = 0;
        loop {
            at += memchr::memchr2(b'"', b'\\', rest.get(at..)?)?;
            if rest[at] == b'"' {
                return Some((Self { raw: &rest[..at] }, at + 1));
            }
            at += 2;
        }
    }

    /// Returns the string's bytes.
    pub(super) fn bytes(&self) -> Cow<'a, [u8]> {
        if memchr::memchr(b'\\', self.raw).is_none() {
            return Cow::Borrowed(self.raw);
        }
        let mut out = Vec::with_capacity(self.raw.len());
        self.append_to(&mut out);
        Cow::Owned(out)
    }

    /// Appends the unescaped bytes of the string to `out`. Unescaping never increases the number of
    /// bytes.
    ///
    /// `\xHH`, which nginx writes if a log format lacks `escape=json`, is accepted too.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let mut raw = self.raw;
        while let Some(at) = memchr::memchr(b'\\', raw) {
            out.extend_from_slice(&raw[..at]);
            raw = &raw[at + 1..];
            let Some((&letter, rest)) = raw.split_first() else { break };
            raw = match letter {
                b'u' => unicode(rest, out),
                b'x' => byte(rest, out),
                _ => {
                    out.push(simple(letter));
                    rest
                }
            };
        }
        out.extend_from_slice(raw);
    }
}

fn simple(letter: u8) -> u8 {
    match letter {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    }
}

/// Appends the character of `\uXXXX`. `rest` starts after the `u`. Half a surrogate pair or invalid
/// digits result in U+FFFD. Returns the text after the escape.
fn unicode<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((first, rest)) = code_unit(rest) else {
        return replacement(out, rest);
    };
    let second = rest.strip_prefix(b"\\u").and_then(code_unit);
    let (character, rest) = match (first, second) {
        (0xd800..0xdc00, Some((second @ 0xdc00..0xe000, rest))) => {
            (char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)), rest)
        }
        _ => (char::from_u32(first), rest),
    };
    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    rest
}

/// Appends `?` in place of a broken escape that is shorter than U+FFFD, because the text must not
/// grow. Returns `rest`.
fn replacement<'a>(out: &mut Vec<u8>, rest: &'a [u8]) -> &'a [u8] {
    out.push(b'?');
    rest
}

fn code_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let unit =
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | u32::from(hex(*digit)?)))?;
    Some((unit, rest))
}

fn byte<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    match *rest {
        [high, low, ref after @ ..] => match (hex(high), hex(low)) {
            (Some(high), Some(low)) => {
                out.push(high << 4 | low);
                after
            }
            _ => replacement(out, rest),
        },
        _ => replacement(out, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rest: &str) -> Option<(Vec<u8>, usize)> {
        let (text, length) = Text::before_quote(rest.as_bytes())?;
        let bytes = text.bytes().into_owned();
        assert!(bytes.len() < length, "{rest} grew");
        Some((bytes, length))
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(read(r#"abc" d"#), Some((b"abc".to_vec(), 4)));
        assert_eq!(read(r#"a\"b\\\/\n" "#).unwrap().0, b"a\"b\\/\n");
        assert_eq!(read(r#"\u00e9\u20AC" "#).unwrap().0, "é€".as_bytes());
        assert_eq!(read(r#"\ud83d\ude00" "#).unwrap().0, "😀".as_bytes());
        assert_eq!(read(r#"\x22\x41" "#).unwrap().0, b"\"A");
    }

    #[test]
    fn broken_escapes_neither_panic_nor_grow() {
        assert_eq!(read(r#"\ud83dx" "#).unwrap().0, "\u{fffd}x".as_bytes());
        assert_eq!(read(r#"\ud83d\u0041" "#).unwrap().0, "\u{fffd}A".as_bytes());
        assert_eq!(read(r#"\u12" "#).unwrap().0, b"?12");
        assert_eq!(read(r#"\xg0" "#).unwrap().0, b"?g0");
        assert_eq!(read(r#"abc\""#), None);
        assert_eq!(read(r"abc\"), None);
    }
}
