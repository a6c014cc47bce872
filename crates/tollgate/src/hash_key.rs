//! The deployment's secret key, under which credentials are hashed.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip128::{Hasher128, SipHasher24};
use tollgate_core::KeyedHash;

/// A secret 128-bit key. Nodes that share a store share the key, or they see other subjects, and
/// refuse each other's receipts.
#[derive(Clone)]
pub struct HashKey {
    subjects: [u8; 16],
    /// A second key, for seals: a client that can choose credentials and sees their hashes learns
    /// nothing about it.
    receipts: [u8; 16],
}

impl HashKey {
    /// Creates a key from the operating system's randomness. No other process has it.
    #[must_use]
    pub fn random() -> Self {
        Self { subjects: random(), receipts: random() }
    }

    /// Derives the key from a secret of any length; the result is the same on every node.
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> Self {
        Self { subjects: sip128(&[0; 16], secret), receipts: sip128(&[1; 16], secret) }
    }

    /// Returns the seal of a receipt's `bytes`: proof that a node with this key wrote them.
    pub(crate) fn seal(&self, bytes: &[u8]) -> [u8; 16] {
        sip128(&self.receipts, bytes)
    }
}

impl KeyedHash for HashKey {
    /// SipHash-2-4 with 128 bits, by Aumasson and Bernstein (2012): a pseudorandom function that is
    /// made for short inputs under a secret key.
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        sip128(&self.subjects, bytes)
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

fn random() -> [u8; 16] {
    let mut key = [0; 16];
    for half in key.chunks_exact_mut(8) {
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    key
}

fn sip128(key: &[u8; 16], bytes: &[u8]) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_neither_itself_nor_another_keys_hashes() {
        let (one, other) = (HashKey::from_secret(b"one"), HashKey::from_secret(b"other"));
        assert_eq!(one.hash(b"token"), HashKey::from_secret(b"one").hash(b"token"));
        assert_ne!(one.hash(b"token"), other.hash(b"token"));
        assert_ne!(HashKey::random().hash(b"token"), HashKey::random().hash(b"token"));
        assert_eq!(format!("{one:?}"), "HashKey(secret)");
        assert_ne!(one.seal(b"token"), one.hash(b"token"));
        assert_ne!(one.seal(b"token"), other.seal(b"token"));
    }
}
