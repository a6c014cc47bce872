//! The text forms of subjects and hashes: those that stores use in the names of their keys, and
//! those that people read.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{HASH, KeyedHash, Stored, Subject, Value};

/// Appends `subject` to `out` in readable form: `user=42,address=2001:db8::/64`. A dimension
/// without a value is written as `name~`, and a hashed value as `name#` with hexadecimal digits.
///
/// In names and values only letters, digits and the bytes in `kept` stay unchanged. Every other
/// byte becomes `%` and two hexadecimal digits. Two different subjects have different texts if
/// `kept` contains none of `%`, `,`, `=`, `~` and `#`.
pub fn push_subject(out: &mut String, subject: &Subject, kept: &[u8]) {
    for (index, (name, value)) in subject.pairs().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_readable(out, name.as_bytes(), kept);
        match value {
            Stored::Absent => out.push('~'),
            Stored::Clear(bytes) => {
                out.push('=');
                push_readable(out, bytes, kept);
            }
            Stored::Hashed(bytes) => {
                out.push('#');
                bytes.iter().for_each(|byte| push_hex(out, *byte));
            }
        }
    }
}

/// Parses a subject that [`push_subject`] wrote; returns `None` for any other text. If the text
/// contains only the hash of a value, the subject contains that hash.
#[must_use]
pub fn read_subject(text: &str, key: &(impl KeyedHash + ?Sized)) -> Option<Subject> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty() || !text.is_empty());
    let pairs = pairs.map(Pair::read).collect::<Option<Vec<_>>>()?;
    Some(Subject::new(pairs.iter().map(|pair| (&*pair.name, pair.value())), key))
}

/// One pair of a subject, parsed from its readable form.
struct Pair {
    name: String,
    value: Written,
}

enum Written {
    Absent,
    Clear(Vec<u8>),
    Hashed([u8; HASH]),
}

impl Pair {
    fn read(text: &str) -> Option<Self> {
        let end = text.find(['~', '=', '#'])?;
        let (name, rest) = text.split_at(end);
        let value = match rest.split_at(1) {
            ("~", "") => Written::Absent,
            ("=", value) => Written::Clear(unescaped(value)?),
            ("#", hash) => Written::Hashed(hashed(hash)?),
            _ => return None,
        };
        Some(Self { name: String::from_utf8(unescaped(name)?).ok()?, value })
    }

    fn value(&self) -> Value<'_> {
        match &self.value {
            Written::Absent => Value::Absent,
            Written::Clear(bytes) => Value::Clear(bytes),
            Written::Hashed(hash) => Value::Hashed(*hash),
        }
    }
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut read = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        read.push(match byte {
            b'%' => byte_of(bytes.next()?, bytes.next()?)?,
            byte => byte,
        });
    }
    Some(read)
}

fn hashed(text: &str) -> Option<[u8; HASH]> {
    let pairs = text.as_bytes().chunks(2);
    let bytes =
        pairs.map(|pair| byte_of(*pair.first()?, *pair.get(1)?)).collect::<Option<Vec<_>>>();
    bytes?.try_into().ok()
}

fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |byte| char::from(byte).to_digit(16);
    // Two hexadecimal digits encode one byte.
    digit(high).zip(digit(low)).map(|(high, low)| (high << 4 | low) as u8)
}

/// Appends 128 bits to `out` as 22 characters of the URL-safe base64 alphabet (RFC 4648, section
/// 5), without padding.
pub fn push_base64(out: &mut String, bytes: [u8; 16]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut rest = u128::from_be_bytes(bytes);
    for _ in 0..22 {
        // Each character contains the next six bits, from the highest bit on. The last character
        // contains two.
        out.push(char::from(ALPHABET[(rest >> 122) as usize]));
        rest <<= 6;
    }
}

/// Appends `bytes` to `out` as [`push_subject`] writes names and values. If two values begin with
/// the same bytes, their texts begin with the same characters.
pub fn push_readable(out: &mut String, bytes: &[u8], kept: &[u8]) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            push_hex(out, byte);
        }
    }
}

fn push_hex(out: &mut String, byte: u8) {
    for digit in [byte >> 4, byte & 15] {
        out.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
    }
}

impl fmt::Display for Subject {
    /// Writes a subject as, for example, `user=42, address=2001:db8::/64`. Writes a hash as `#` and
    /// its first 8 bytes in hexadecimal. Escapes bytes outside printable ASCII.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.as_bytes().is_empty() {
            return f.write_str("everybody");
        }
        for (index, (name, value)) in self.pairs().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name}=")?;
            match value {
                Stored::Absent => f.write_str("(none)")?,
                Stored::Clear(bytes) => write!(f, "{}", bytes.escape_ascii())?,
                Stored::Hashed(bytes) => {
                    f.write_str("#")?;
                    bytes.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject({self})")
    }
}
