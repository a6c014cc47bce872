//! Who is limited: a subject, encoded so that two different ones never look alike.

pub mod text;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// A clear value longer than this many bytes is stored as its keyed hash.
///
/// Keys stay short whatever a client sends, and everything a person would type stays readable.
pub const MAX_INLINE_VALUE: usize = 128;

/// A keyed 128-bit hash that whoever does not hold the deployment's key cannot compute.
///
/// The core has no hash of its own: the caller brings one, with its key.
pub trait KeyedHash {
    /// The hash of `bytes` under the deployment's key.
    fn hash(&self, bytes: &[u8]) -> [u8; 16];
}

/// The value of one dimension of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The request has none. All requests without one share a counter: nobody escapes a limit by
    /// leaving a header out.
    Absent,
    /// Kept readable, unless it is longer than [`MAX_INLINE_VALUE`].
    Clear(&'a [u8]),
    /// A credential: only its keyed hash is ever kept.
    Secret(&'a [u8]),
    /// The keyed hash of a value that is not known itself.
    Hashed([u8; HASH]),
}

/// Bytes of a keyed hash.
pub const HASH: usize = 16;

const ABSENT: u8 = 0;
const CLEAR: u8 = 1;
const LONG: u8 = 2;
const SECRET: u8 = 3;

/// An ordered list of (dimension, value) pairs such as `user=42`, in one unambiguous encoding.
///
/// Every name and value carries its length, and every value its kind, so no byte in either can
/// make two different subjects equal: delimiters, braces, newlines, NUL and invalid UTF-8 are
/// bytes like any other.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Subject(Box<[u8]>);

impl Subject {
    /// Encodes `pairs` in their order. No pairs at all name the one subject that is everybody.
    pub fn new<'a>(
        pairs: impl IntoIterator<Item = (&'a str, Value<'a>), IntoIter: Clone>,
        key: &(impl KeyedHash + ?Sized),
    ) -> Self {
        let pairs = pairs.into_iter();
        // As many bytes as it takes: a buffer that is too large would be moved to one that fits.
        let size = pairs.clone().map(|(name, value)| sized(name.len()) + value.encoded()).sum();
        let mut bytes = Vec::with_capacity(size);
        for (name, value) in pairs {
            push_sized(&mut bytes, name.as_bytes());
            match value {
                Value::Absent => bytes.push(ABSENT),
                Value::Clear(value) if value.len() <= MAX_INLINE_VALUE => {
                    bytes.push(CLEAR);
                    push_sized(&mut bytes, value);
                }
                Value::Clear(value) => {
                    bytes.push(LONG);
                    push_sized(&mut bytes, &key.hash(value));
                }
                Value::Secret(value) => {
                    bytes.push(SECRET);
                    push_sized(&mut bytes, &key.hash(value));
                }
                Value::Hashed(hash) => {
                    bytes.push(SECRET);
                    push_sized(&mut bytes, &hash);
                }
            }
        }
        Self(bytes.into_boxed_slice())
    }

    /// The encoding: equal exactly when the subjects are.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The subject of an encoding that [`as_bytes`](Self::as_bytes) gave; `None` if it is no whole
    /// one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let subject = Self(bytes.into());
        let read: usize = subject.encodings().map(|(_, encoding)| encoding.len()).sum();
        (read == bytes.len()).then_some(subject)
    }

    /// The same with every value as its keyed hash: what can be told of somebody who is not
    /// revealed, and found again by. Equal exactly when names and values are, whether the values
    /// were kept readable or not.
    #[must_use]
    pub fn veiled(&self, key: &(impl KeyedHash + ?Sized)) -> Self {
        let pairs = self.pairs().map(|(name, stored)| {
            let value = match stored {
                Stored::Absent => Value::Absent,
                Stored::Clear(bytes) => Value::Secret(bytes),
                Stored::Hashed(bytes) => bytes.try_into().map_or(Value::Absent, Value::Hashed),
            };
            (name, value)
        });
        Self::new(pairs, key)
    }

    /// The name of each pair, and the pair's own part of the encoding: equal exactly when names
    /// and values are.
    pub fn encodings(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut rest = &*self.0;
        core::iter::from_fn(move || {
            let pair = rest;
            let name = core::str::from_utf8(take_sized(&mut rest)?).ok()?;
            let (kind, after) = rest.split_first()?;
            rest = after;
            if *kind != ABSENT {
                take_sized(&mut rest)?;
            }
            Some((name, &pair[..pair.len() - rest.len()]))
        })
    }

    /// The pairs, each with its name and its value as stored.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, Stored<'_>)> + Clone {
        let mut rest = &*self.0;
        core::iter::from_fn(move || {
            let name = core::str::from_utf8(take_sized(&mut rest)?).ok()?;
            let (kind, after) = rest.split_first()?;
            rest = after;
            let value = match *kind {
                ABSENT => Stored::Absent,
                CLEAR => Stored::Clear(take_sized(&mut rest)?),
                _ => Stored::Hashed(take_sized(&mut rest)?),
            };
            Some((name, value))
        })
    }
}

impl Clone for Subject {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    /// Without asking for memory where `source` is as long.
    fn clone_from(&mut self, source: &Self) {
        self.0.clone_from(&source.0);
    }
}

impl Value<'_> {
    /// Bytes of its encoding, with its kind.
    fn encoded(&self) -> usize {
        match self {
            Self::Absent => 1,
            Self::Clear(value) if value.len() <= MAX_INLINE_VALUE => 1 + sized(value.len()),
            Self::Clear(_) | Self::Secret(_) | Self::Hashed(_) => 1 + sized(HASH),
        }
    }
}

/// A value as a subject keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// There was none.
    Absent,
    /// The bytes themselves.
    Clear(&'a [u8]),
    /// The keyed hash of a credential or of a very long value.
    Hashed(&'a [u8]),
}

impl fmt::Display for Subject {
    /// `user=42, address=2001:db8::/64`; hashes as `#` and their first 8 bytes in hexadecimal,
    /// bytes that are not plain text escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
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

/// Bytes that [`push_sized`] appends for `length` many.
const fn sized(length: usize) -> usize {
    let bits = usize::BITS - (length | 1).leading_zeros();
    bits.div_ceil(7) as usize + length
}

/// Appends the length of `bytes` (seven bits a byte, the last without its high bit), then `bytes`.
fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

fn take_sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        length |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            let (bytes, after) = rest.split_at_checked(length)?;
            *rest = after;
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Length;

    impl KeyedHash for Length {
        fn hash(&self, bytes: &[u8]) -> [u8; 16] {
            [bytes.len() as u8; 16]
        }
    }

    #[test]
    fn a_pair_encodes_the_same_wherever_it_stands() {
        let (user, route) = (("user", Value::Clear(b"4,2")), ("route", Value::Absent));
        let token = ("token", Value::Secret(b"t"));
        let alone = |pair| Subject::new([pair], &Length).as_bytes().to_vec();
        let all = Subject::new([user, route, token], &Length);
        let encodings: Vec<_> = all.encodings().collect();
        let expected = [user, route, token].map(|pair| (pair.0, alone(pair)));
        assert_eq!(encodings.len(), 3);
        assert!(encodings.iter().zip(&expected).all(|(is, should)| *is == (should.0, &should.1)));
        assert_eq!(Subject::default().encodings().count(), 0);
    }

    #[test]
    fn a_veiled_subject_is_the_same_whatever_was_kept_of_it() {
        let long = [b'x'; MAX_INLINE_VALUE + 1];
        for value in [&b"42"[..], &long] {
            let clear = Subject::new([("user", Value::Clear(value))], &Length);
            let secret = Subject::new([("user", Value::Secret(value))], &Length);
            let hashed = Subject::new([("user", Value::Hashed(Length.hash(value)))], &Length);
            assert_eq!(clear.veiled(&Length), hashed);
            assert_eq!(secret.veiled(&Length), hashed);
            assert_eq!(hashed.veiled(&Length), hashed);
        }
        let absent = Subject::new([("user", Value::Absent)], &Length);
        assert_eq!(absent.veiled(&Length), absent);
    }

    #[test]
    fn a_subject_has_as_many_bytes_as_were_counted() {
        let texts = [0, 1, 127, 128, 129, 16_383, 16_384].map(|length| "x".repeat(length));
        for (name, value) in texts.iter().flat_map(|name| texts.iter().map(move |v| (name, v))) {
            let bytes = value.as_bytes();
            let hashed = Value::Hashed([7; HASH]);
            for value in [Value::Absent, Value::Clear(bytes), Value::Secret(bytes), hashed] {
                let subject = Subject::new([(&**name, value)], &Length);
                assert_eq!(subject.as_bytes().len(), sized(name.len()) + value.encoded());
            }
        }
    }

    #[test]
    fn an_encoding_is_read_back_whole_or_not_at_all() {
        let pairs = [("user", Value::Clear(b"42")), ("a", Value::Absent)];
        let subject = Subject::new(pairs, &Length);
        let bytes = subject.as_bytes();
        assert_eq!(Subject::from_bytes(bytes), Some(subject.clone()));
        assert_eq!(Subject::from_bytes(b""), Some(Subject::default()));
        for cut in [1, 4, 5, 6, bytes.len() - 1] {
            assert_eq!(Subject::from_bytes(&bytes[..cut]), None, "{cut}");
        }
    }
}
