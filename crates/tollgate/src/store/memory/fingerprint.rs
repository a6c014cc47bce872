//! Fingerprints of subjects: two keyed hashes of 64 bits each.
//!
//! The two foldhash hashes have independent random keys, which never leave the store, and no client
//! sees a hash: it can choose neither subjects that crowd one place of a table nor two that share a
//! fingerprint. Among 2^40 subjects the chance that any two collide is about one in 2^49, so the
//! bytes of a subject need not be stored. foldhash is no cryptographic function: all of this rests on
//! the secrecy of the keys. SipHash-1-3 with 128 bits would take 230 instructions
//! for a key of 19 bytes, a third of a decision; these two take 90.

use std::hash::{BuildHasher, Hasher, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
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
    charges: KeyedHash,
    /// For subjects with only a clear value of [`KEY_DIMENSION`]. The value is hashed in place: a
    /// copy into an encoding, read again at once in whole words, costs more than the hash.
    keys: KeyedHash,
    refunds: KeyedHash,
}

/// A keyed hash of 128 bits, whose two halves are independent.
struct KeyedHash {
    place: (u64, SharedSeed),
    rest: (u64, SharedSeed),
}

impl KeyedHash {
    /// Takes its keys from `random`.
    fn new(mut random: impl FnMut() -> u64) -> Self {
        let mut seeds = || (random(), SharedSeed::from_u64(random()));
        Self { place: seeds(), rest: seeds() }
    }

    /// Hashes `bytes` one after the other, together with the name of `limit`.
    ///
    /// The name separates the limits: its digest, which the limit has precomputed, is added to the
    /// hash. Two different pairs collide only if the hashes of two subjects differ by exactly the
    /// difference of two digests, which no client can cause without the key.
    #[inline]
    fn hash(&self, limit: &Limit, bytes: &[&[u8]]) -> Fingerprint {
        let half = |(key, seed): &(u64, SharedSeed)| {
            let mut hasher = FoldHasher::with_seed(*key, seed);
            bytes.iter().for_each(|bytes| hasher.write(bytes));
            hasher.finish()
        };
        let name = limit.state_digest();
        Fingerprint {
            place: half(&self.place) ^ name as u64,
            rest: half(&self.rest) ^ (name >> 64) as u64,
        }
    }
}

impl Fingerprinter {
    /// Creates keys from the operating system's randomness.
    ///
    /// [`RandomState`] is seeded from it; its hashes of different inputs reveal nothing about one
    /// another.
    pub(super) fn random() -> Self {
        let (source, mut number) = (RandomState::new(), 0_u8);
        let mut random = || {
            number += 1;
            source.hash_one(number)
        };
        Self {
            charges: KeyedHash::new(&mut random),
            keys: KeyedHash::new(&mut random),
            refunds: KeyedHash::new(&mut random),
        }
    }

    /// Returns the fingerprint of the state of `subject` for `limit`.
    #[inline]
    pub(super) fn charged(&self, limit: &Limit, subject: &Subject) -> Fingerprint {
        match subject.only_clear_value(KEY_DIMENSION) {
            Some(value) => self.charged_key(limit, value),
            None => self.charges.hash(limit, &[subject.as_bytes()]),
        }
    }

    /// Does the same as [`charged`](Self::charged), for the subject whose only dimension is
    /// [`KEY_DIMENSION`], with the clear value `key`.
    #[inline]
    pub(super) fn charged_key(&self, limit: &Limit, key: &[u8]) -> Fingerprint {
        self.keys.hash(limit, &[key])
    }

    /// Returns the fingerprint of the refund of the charge `id`. The id precedes the subject and
    /// has a fixed length.
    pub(super) fn refunded(&self, limit: &Limit, subject: &Subject, id: ChargeId) -> Fingerprint {
        self.refunds.hash(limit, &[&id.0.to_le_bytes(), subject.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::algo::{Anchor, FixedWindow};
    use tollgate_core::{Algorithm, Millis, Value};

    use super::*;

    struct NoSecrets;

    impl tollgate_core::KeyedHash for NoSecrets {
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
