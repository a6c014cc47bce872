//! The subject of a limit, encoded without collisions between different subjects.

mod encoding;
pub mod text;

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};

use encoding::{Encoding, IN_PLACE, Short, Sink};

/// The longest value, in bytes, that a subject contains in readable form. A longer value is stored
/// as its keyed hash.
///
/// The bound keeps keys short, whatever a client sends. Values that people type are shorter than
/// the bound and stay readable.
pub const MAX_INLINE_VALUE: usize = 128;

/// Computes a keyed 128-bit hash. The hash cannot be computed without the deployment's key.
///
/// This crate has no hash function of its own. The program that uses the crate implements this
/// trait with a hash function and the key.
pub trait KeyedHash {
    /// Returns the hash of `bytes` under the deployment's key.
    fn hash(&self, bytes: &[u8]) -> [u8; 16];
}

/// The value of one dimension of a subject. A dimension is one named part, such as `user` or
/// `address`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The request has no value for the dimension. All requests without a value share a counter, so
    /// a client cannot evade a limit by omitting a header.
    Absent,
    /// A readable value. If it is longer than [`MAX_INLINE_VALUE`], its hash is stored instead.
    Clear(&'a [u8]),
    /// A credential: only its keyed hash is stored.
    Secret(&'a [u8]),
    /// The keyed hash of a value, if the value itself is not known.
    Hashed([u8; HASH]),
}

/// The length of a keyed hash in bytes.
pub const HASH: usize = 16;

const ABSENT: u8 = 0;
const CLEAR: u8 = 1;
const LONG: u8 = 2;
const SECRET: u8 = 3;

/// The name of the dimension of subjects that have a single dimension. The name is encoded once for
/// all of these subjects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubjectName(Short);

impl SubjectName {
    /// Encodes `name`. Returns `None` if a subject with this name and a hashed value is too long to
    /// be stored without an allocation.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let longest = sized(name.len()) + 1 + sized(HASH);
        if longest > IN_PLACE {
            return None;
        }
        let mut encoded = Short::EMPTY;
        push_sized(&mut encoded, name.as_bytes());
        Some(Self(encoded))
    }

    /// Returns the subject whose only pair is this name and `value`, as [`Subject::new`] does.
    /// Returns `None` if the encoding of the subject is too long to be stored without an
    /// allocation.
    #[inline]
    pub(crate) fn subject(&self, value: Value<'_>, key: &dyn KeyedHash) -> Option<Subject> {
        let mut encoded = self.0;
        match value {
            Value::Absent => encoded.push(ABSENT),
            Value::Clear(bytes) => {
                if encoded.as_bytes().len() + 1 + sized(bytes.len()) > IN_PLACE {
                    return None;
                }
                encoded.push(CLEAR);
                push_sized(&mut encoded, bytes);
            }
            Value::Secret(bytes) => push_secret(&mut encoded, &key.hash(bytes)),
            Value::Hashed(hash) => push_secret(&mut encoded, &hash),
        }
        Some(Subject(Encoding::Short(encoded)))
    }
}

/// Appends the value of a credential with this `hash`.
#[inline]
fn push_secret(out: &mut impl Sink, hash: &[u8; HASH]) {
    out.push(SECRET);
    out.push(HASH as u8);
    out.extend(hash);
}

/// An ordered list of (dimension, value) pairs such as `user=42`, in one unambiguous encoding.
///
/// Every name and value is encoded with its length, and every value with its kind. Two different
/// subjects therefore never have the same encoding, whatever bytes the names and values contain.
/// Delimiters, braces, newlines, NUL and invalid UTF-8 are ordinary bytes.
///
/// A short subject, such as a hashed credential or an IPv4 address, needs no allocation.
pub struct Subject(Encoding);

impl Subject {
    /// Encodes `pairs` in their order. An empty list is the subject of all requests.
    pub fn new<'a>(
        pairs: impl IntoIterator<Item = (&'a str, Value<'a>), IntoIter: Clone>,
        key: &(impl KeyedHash + ?Sized),
    ) -> Self {
        let pairs = pairs.into_iter();
        // `size` is the exact size of the encoding. Converting a buffer with spare capacity to a
        // box would reallocate the buffer.
        let size = pairs.clone().map(|(name, value)| sized(name.len()) + value.encoded()).sum();
        if size <= IN_PLACE {
            let mut short = Short::EMPTY;
            encode(&mut short, pairs, key);
            return Self(Encoding::Short(short));
        }
        let mut bytes = Vec::with_capacity(size);
        encode(&mut bytes, pairs, key);
        Self(Encoding::Long(bytes.into_boxed_slice()))
    }

    /// Returns the readable value of a subject that consists of the single dimension `name`.
    /// Returns `None` for any other subject, and for a value that is absent or hashed.
    ///
    /// `name` must have at most 127 bytes.
    #[inline]
    #[must_use]
    pub fn only_clear_value(&self, name: &str) -> Option<&[u8]> {
        debug_assert!(name.len() <= 0x7f, "a longer name has a length of two bytes");
        let rest = self.as_bytes().strip_prefix(&[name.len() as u8])?;
        let mut rest = rest.strip_prefix(name.as_bytes())?.strip_prefix(&[CLEAR])?;
        take_sized(&mut rest).filter(|_| rest.is_empty())
    }

    /// Returns the encoding. Two encodings are equal if and only if the subjects are equal.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Decodes a subject from the encoding that [`as_bytes`](Self::as_bytes) returns. Returns
    /// `None` if `bytes` are incomplete or malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let subject = Self(Encoding::of(bytes));
        let read: usize = subject.encodings().map(|(_, encoding)| encoding.len()).sum();
        (read == bytes.len()).then_some(subject)
    }

    /// Returns the subject with every value replaced by its keyed hash, which identifies the
    /// subject without revealing its values. Two results are equal if and only if the names and the
    /// values are equal, whether the values were stored readable or as hashes.
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

    /// Returns the name of each pair, with the bytes that encode the pair. The bytes of two pairs
    /// are equal if and only if their names and their values are equal.
    pub fn encodings(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut rest = self.as_bytes();
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

    /// Returns the pairs, each with its name and its stored value.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, Stored<'_>)> + Clone {
        let mut rest = self.as_bytes();
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

    /// Copies `source`, and reuses the allocation of this subject if both encodings have the same
    /// length.
    #[inline]
    fn clone_from(&mut self, source: &Self) {
        match (&mut self.0, &source.0) {
            (Encoding::Short(bytes), Encoding::Short(other)) => *bytes = *other,
            (Encoding::Long(bytes), Encoding::Long(other)) => bytes.clone_from(other),
            (bytes, other) => *bytes = other.clone(),
        }
    }
}

impl Default for Subject {
    fn default() -> Self {
        Self(Encoding::Short(Short::EMPTY))
    }
}

impl PartialEq for Subject {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Subject {}

impl PartialOrd for Subject {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Subject {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Subject {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Value<'_> {
    /// Returns the length in bytes of the value's encoding, including the first byte, which states
    /// the kind of the value.
    fn encoded(&self) -> usize {
        match self {
            Self::Absent => 1,
            Self::Clear(value) if value.len() <= MAX_INLINE_VALUE => 1 + sized(value.len()),
            Self::Clear(_) | Self::Secret(_) | Self::Hashed(_) => 1 + sized(HASH),
        }
    }
}

/// The value of a dimension as it is stored in a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// The request had no value for the dimension.
    Absent,
    /// The bytes of a readable value.
    Clear(&'a [u8]),
    /// The keyed hash of a credential or of a very long value.
    Hashed(&'a [u8]),
}

/// Returns the number of bytes that [`push_sized`] appends for a value of `length` bytes.
const fn sized(length: usize) -> usize {
    let bits = usize::BITS - (length | 1).leading_zeros();
    bits.div_ceil(7) as usize + length
}

/// Appends the length of `bytes`, then `bytes`. The length is divided into groups of seven bits,
/// the lowest first, and each group becomes one byte. The high bit is set in all bytes of the
/// length except the last.
fn push_sized(out: &mut impl Sink, bytes: &[u8]) {
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
}

/// Appends the encoding of `pairs` to `out`. `key` hashes the values that are not stored in
/// readable form.
fn encode<'a>(
    out: &mut impl Sink,
    pairs: impl Iterator<Item = (&'a str, Value<'a>)>,
    key: &(impl KeyedHash + ?Sized),
) {
    for (name, value) in pairs {
        push_sized(out, name.as_bytes());
        match value {
            Value::Absent => out.push(ABSENT),
            Value::Clear(value) if value.len() <= MAX_INLINE_VALUE => {
                out.push(CLEAR);
                push_sized(out, value);
            }
            Value::Clear(value) => {
                out.push(LONG);
                push_sized(out, &key.hash(value));
            }
            Value::Secret(value) => push_secret(out, &key.hash(value)),
            Value::Hashed(hash) => push_secret(out, &hash),
        }
    }
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
        let single = |pair| Subject::new([pair], &Length).as_bytes().to_vec();
        let all = Subject::new([user, route, token], &Length);
        let encodings: Vec<_> = all.encodings().collect();
        let expected = [user, route, token].map(|pair| (pair.0, single(pair)));
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
    fn a_subject_of_an_encoded_name_is_that_of_its_pair() {
        let hash = Value::Hashed([7; HASH]);
        for length in 0..60 {
            let text = "v".repeat(length);
            let name = SubjectName::new(&text);
            assert_eq!(name.is_some(), length + 1 + 2 + HASH <= IN_PLACE, "{length}");
            let Some(name) = name else { continue };
            for value in 0..60 {
                let value = "w".repeat(value);
                let bytes = value.as_bytes();
                for value in [Value::Absent, Value::Clear(bytes), Value::Secret(bytes), hash] {
                    let whole = Subject::new([(&*text, value)], &Length);
                    let is_short = whole.as_bytes().len() <= IN_PLACE;
                    assert_eq!(name.subject(value, &Length), is_short.then_some(whole));
                }
            }
        }
    }

    #[test]
    fn only_a_single_clear_pair_has_an_only_clear_value() {
        for length in 0..=MAX_INLINE_VALUE {
            let value = alloc::vec![b'v'; length];
            let subject = Subject::new([("key", Value::Clear(&value))], &Length);
            assert_eq!(subject.only_clear_value("key"), Some(&*value), "{length}");
            assert_eq!(subject.only_clear_value("ke"), None, "{length}");
            assert_eq!(subject.only_clear_value("keys"), None, "{length}");
        }
        let long = [b'x'; MAX_INLINE_VALUE + 1];
        for value in [Value::Clear(&long), Value::Secret(b"a"), Value::Absent] {
            assert_eq!(Subject::new([("key", value)], &Length).only_clear_value("key"), None);
        }
        let two = [("key", Value::Clear(b"a")), ("key", Value::Clear(b"b"))];
        assert_eq!(Subject::new(two, &Length).only_clear_value("key"), None);
        assert_eq!(Subject::default().only_clear_value("key"), None);
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
