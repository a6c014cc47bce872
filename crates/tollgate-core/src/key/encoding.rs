//! The storage of a subject's bytes. A short encoding is stored in the value itself, without an
//! allocation. A longer encoding is stored in a box.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// The largest number of bytes that a subject stores without an allocation. A hashed credential or
/// an IPv4 address fits, together with the name of its dimension. The bytes and their length take
/// five machine words.
pub(super) const IN_PLACE: usize = 38;

/// The encoded bytes of a subject. The length of the bytes alone determines the variant, so equal
/// encodings always have the same variant.
#[derive(Clone, PartialEq)]
pub(super) enum Encoding {
    Short(Short),
    Long(Box<[u8]>),
}

/// An encoding of at most [`IN_PLACE`] bytes, which needs no allocation. The bytes after the
/// encoding are zero, so a comparison of two encodings compares a fixed number of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Short {
    length: u8,
    bytes: [u8; IN_PLACE],
}

/// A buffer to which an encoder appends bytes.
pub(super) trait Sink {
    fn push(&mut self, byte: u8);
    fn extend(&mut self, bytes: &[u8]);
}

impl Encoding {
    pub(super) fn of(bytes: &[u8]) -> Self {
        if bytes.len() > IN_PLACE {
            return Self::Long(bytes.into());
        }
        let mut short = Short::EMPTY;
        short.extend(bytes);
        Self::Short(short)
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(short) => short.as_bytes(),
            Self::Long(bytes) => bytes,
        }
    }
}

impl Short {
    pub(super) const EMPTY: Self = Self { length: 0, bytes: [0; IN_PLACE] };

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Sink for Short {
    #[inline]
    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.length)] = byte;
        self.length += 1;
    }

    #[inline]
    fn extend(&mut self, bytes: &[u8]) {
        let start = usize::from(self.length);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        // The cast is exact, because the array has fewer than 256 bytes.
        self.length += bytes.len() as u8;
    }
}

impl Sink for Vec<u8> {
    fn push(&mut self, byte: u8) {
        self.push(byte);
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
