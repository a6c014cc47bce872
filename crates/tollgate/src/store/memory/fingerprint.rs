//! Fingerprints of subjects: keyed hashes, 128 bits wide.
//!
//! SipHash-1-3 under a random key: no client can choose subjects that crowd one place of a table,
//! or two that share a fingerprint. Among 2^40 subjects the chance that any two collide is about
//! one in 2^49, so the bytes of a subject need not be stored.

use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip128::{Hash128, Hasher128, SipHasher13};
use tollgate_core::{ChargeId, Limit, Subject};

/// The keyed hash of one entry's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    /// Selects the slot in the table.
    pub(super) place: u64,
    /// Selects the shard.
    pub(super) rest: u64,
}

impl Fingerprint {
    /// Returns its shard among `count` shards.
    pub(super) fn shard(self, count: usize) -> usize {
        ((u128::from(self.rest) * count as u128) >> 64) as usize
    }

    /// Returns its overflow counter among `count` counters, whatever its shard.
    pub(super) const fn part(self, count: usize) -> usize {
        (((self.rest & 0xffff_ffff) as u128 * count as u128) >> 32) as usize
    }
}

/// The name of the only dimension of a subject that is a plain key.
pub(crate) const KEY_DIMENSION: &str = "key";

/// Creates the fingerprints of one store, under keys that never leave it.
pub(super) struct Fingerprinter {
    charges: SipHasher13,
    /// Of subjects with a clear value of [`KEY_DIMENSION`] alone. The value is hashed in place:
    /// a copy into an encoding, read again at once in whole words, costs more than the hash.
    keys: SipHasher13,
    refunds: SipHasher13,
}

impl Fingerprinter {
    /// Creates keys from the operating system's randomness.
    ///
    /// [`RandomState`] is seeded from it; its hashes of different inputs reveal nothing about one
    /// another.
    pub(super) fn random() -> Self {
        let source = RandomState::new();
        let key = |number: u8| source.hash_one(number);
        Self {
            charges: SipHasher13::new_with_keys(key(0), key(1)),
            refunds: SipHasher13::new_with_keys(key(2), key(3)),
            keys: SipHasher13::new_with_keys(key(4), key(5)),
        }
    }

    /// Returns the fingerprint of the state of `subject` for `limit`.
    #[inline]
    pub(super) fn charged(&self, limit: &Limit, subject: &Subject) -> Fingerprint {
        match subject.only_clear_value(KEY_DIMENSION) {
            Some(value) => self.charged_key(limit, value),
            None => under(limit, self.charges.hash(subject.as_bytes())),
        }
    }

    /// Does the same as [`charged`](Self::charged), for the subject whose only dimension is
    /// [`KEY_DIMENSION`], with the clear value `key`.
    #[inline]
    pub(super) fn charged_key(&self, limit: &Limit, key: &[u8]) -> Fingerprint {
        under(limit, self.keys.hash(key))
    }

    /// Returns the fingerprint of the refund of the charge `id`. The id precedes the subject and
    /// has a fixed length.
    pub(super) fn refunded(&self, limit: &Limit, subject: &Subject, id: ChargeId) -> Fingerprint {
        let mut hasher = self.refunds;
        hasher.write(&id.0.to_le_bytes());
        hasher.write(subject.as_bytes());
        under(limit, hasher.finish128())
    }
}

/// Separates the limits: adds the limit's state digest, which the limit has precomputed, to `hash`.
/// Two different pairs collide only if the keyed hashes of two subjects differ by exactly the
/// difference of two digests, which no client can cause without the key.
#[inline]
const fn under(limit: &Limit, hash: Hash128) -> Fingerprint {
    let name = limit.state_digest();
    Fingerprint { place: hash.h1 ^ name as u64, rest: hash.h2 ^ (name >> 64) as u64 }
}

#[cfg(test)]
mod tests {
    use tollgate_core::algo::{Anchor, FixedWindow};
    use tollgate_core::{Algorithm, KeyedHash, Millis, Value};

    use super::*;

    struct NoSecrets;

    impl KeyedHash for NoSecrets {
        fn hash(&self, bytes: &[u8]) -> [u8; 16] {
            [bytes.len() as u8; 16]
        }
    }

    fn limit(name: &str) -> Limit {
        let window = FixedWindow::new(1, Millis::from_secs(1), Anchor::FirstRequest);
        Limit::new(name, Algorithm::FixedWindow(window.unwrap())).unwrap()
    }

    fn subject(dimension: &str) -> Subject {
        Subject::new([(dimension, Value::Absent)], &NoSecrets)
    }

    #[test]
    fn a_name_is_never_taken_for_the_subject_behind_it() {
        let prints = Fingerprinter::random();
        let mut seen = std::collections::HashSet::new();
        for name in ["a", "ab", "abc", "b"] {
            for dimension in ["", "a", "b", "ab", "c", "abc", "cab"] {
                let (limit, subject) = (limit(name), subject(dimension));
                assert!(seen.insert(prints.charged(&limit, &subject)), "{name} {dimension}");
                for id in [ChargeId(0), ChargeId(u128::MAX)] {
                    assert!(seen.insert(prints.refunded(&limit, &subject, id)));
                }
            }
        }
    }

    #[test]
    fn a_key_is_never_taken_for_a_subject_with_the_same_bytes() {
        let (prints, limit) = (Fingerprinter::random(), limit("core"));
        let key = Subject::new([(KEY_DIMENSION, Value::Clear(b"alice"))], &NoSecrets);
        assert_eq!(prints.charged(&limit, &key), prints.charged_key(&limit, b"alice"));
        assert_ne!(prints.charged(&limit, &key), prints.charged_key(&limit, key.as_bytes()));
        for name in ["user", "ke", "keys", ""] {
            let other = Subject::new([(name, Value::Clear(b"alice"))], &NoSecrets);
            assert_ne!(prints.charged(&limit, &key), prints.charged(&limit, &other), "{name}");
        }
    }

    #[test]
    fn subjects_of_any_length_have_one_fingerprint() {
        let (prints, limit) = (Fingerprinter::random(), limit("core"));
        for length in 0..300 {
            let one = subject(&"n".repeat(length));
            let other = subject(&"n".repeat(length + 1));
            assert_eq!(prints.charged(&limit, &one), prints.charged(&limit, &one.clone()));
            assert_ne!(prints.charged(&limit, &one), prints.charged(&limit, &other));
        }
    }

    #[test]
    fn two_stores_do_not_share_a_key() {
        let (limit, subject) = (limit("core"), subject("user"));
        let [one, other] = [Fingerprinter::random(), Fingerprinter::random()];
        assert_ne!(one.charged(&limit, &subject), other.charged(&limit, &subject));
    }
}
