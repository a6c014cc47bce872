//! Fingerprints of subjects: keyed hashes of 96 bits. Further bits of the same hash select the
//! shard.
//!
//! A fingerprint consists of two foldhash hashes with independent random keys. The keys never leave
//! the store, and no client sees a hash. A client can therefore not choose subjects that collide in
//! one slot of a table, or two subjects with the same fingerprint. Among a million entries, the
//! default bound of a store, the chance that any two fingerprints are equal is about one in 2^65,
//! so the bytes of a subject need not be stored. foldhash is not a cryptographic function: these
//! guarantees rest on the secrecy of the keys. For a key of 19 bytes, SipHash-1-3 with 128 bits
//! would take 230 instructions, a third of a decision. The two foldhash hashes take 90.

use std::hash::{BuildHasher, Hasher, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use tollgate_core::{ChargeId, Limit, Subject};

/// The keyed hash that identifies one entry in its shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    /// Selects the slot in the table.
    pub(super) place: u64,
    pub(super) rest: u32,
}

/// The keyed hash of one subject, before the hash is combined with a limit.
#[derive(Clone, Copy)]
pub(super) struct SubjectHash {
    place: u64,
    /// The upper half selects the shard. The shard does not depend on the limit, so the entries of
    /// a subject for all limits are in one shard, and a request needs only one lock.
    rest: u64,
}

impl SubjectHash {
    /// Returns the fingerprint of the state that `limit` has for this subject.
    ///
    /// The fingerprint is the sum of the subject's hash and the digest of the limit's name, which
    /// the limit has precomputed. Two different pairs of a subject and a limit have the same
    /// fingerprint only if the difference of the subjects' hashes is exactly the difference of the
    /// limits' digests. A client without the key cannot cause such a collision.
    #[inline]
    pub(super) const fn on(self, limit: &Limit) -> Fingerprint {
        let name = limit.state_digest();
        Fingerprint {
            place: self.place ^ name as u64,
            rest: self.rest as u32 ^ (name >> 64) as u32,
        }
    }

    /// Returns the index of the subject's shard among `count` shards. `count` is at most 2^32.
    #[inline]
    pub(super) const fn shard(self, count: usize) -> usize {
        (((self.rest >> 32) * count as u64) >> 32) as usize
    }
}

impl Fingerprint {
    /// Returns the index of the subject's overflow counter among `count` overflow counters. The
    /// index does not depend on the shard.
    pub(super) const fn part(self, count: usize) -> usize {
        ((self.rest as u64 * count as u64) >> 32) as usize
    }
}

/// The name of the only pair in the subject of a plain key. The value of the pair is the key.
pub(crate) const KEY_DIMENSION: &str = "key";

/// Creates the fingerprints of one store, with keys that never leave the store.
pub(super) struct Fingerprinter {
    charges: KeyedHash,
    /// The hash function for subjects that consist of one unhashed value under the name
    /// [`KEY_DIMENSION`]. The value is hashed directly. To copy the value into a subject's encoding
    /// and read the copy again would take longer than the hash.
    keys: KeyedHash,
    refunds: KeyedHash,
}

/// A keyed hash of 128 bits, whose two halves are independent.
struct KeyedHash {
    place: (u64, SharedSeed),
    rest: (u64, SharedSeed),
}

impl KeyedHash {
    /// Creates a keyed hash with keys from `random`.
    fn new(mut random: impl FnMut() -> u64) -> Self {
        let mut seeds = || (random(), SharedSeed::from_u64(random()));
        Self { place: seeds(), rest: seeds() }
    }

    /// Hashes the slices of `bytes` one after the other.
    #[inline]
    fn hash(&self, bytes: &[&[u8]]) -> SubjectHash {
        let half = |(key, seed): &(u64, SharedSeed)| {
            let mut hasher = FoldHasher::with_seed(*key, seed);
            bytes.iter().for_each(|bytes| hasher.write(bytes));
            hasher.finish()
        };
        SubjectHash { place: half(&self.place), rest: half(&self.rest) }
    }
}

impl Fingerprinter {
    /// Creates a fingerprinter with keys from the randomness of the operating system.
    ///
    /// This randomness seeds [`RandomState`], whose hashes of different inputs reveal nothing about
    /// one another.
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

    /// Returns the hash of `subject`.
    #[inline]
    pub(super) fn subject(&self, subject: &Subject) -> SubjectHash {
        match subject.only_clear_value(KEY_DIMENSION) {
            Some(value) => self.key(value),
            None => self.charges.hash(&[subject.as_bytes()]),
        }
    }

    /// Returns the hash of the subject that consists of the unhashed value `key` under the name
    /// [`KEY_DIMENSION`]. The hash equals the hash that [`subject`](Self::subject) returns for this
    /// subject.
    #[inline]
    pub(super) fn key(&self, key: &[u8]) -> SubjectHash {
        self.keys.hash(&[key])
    }

    /// Returns the fingerprint of the record that the charge `id` was refunded. Different records
    /// never hash the same bytes, because the id has a fixed length and precedes the subject.
    pub(super) fn refunded(&self, limit: &Limit, subject: &Subject, id: ChargeId) -> Fingerprint {
        self.refunds.hash(&[&id.0.to_le_bytes(), subject.as_bytes()]).on(limit)
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
                assert!(seen.insert(prints.subject(&subject).on(&limit)), "{name} {dimension}");
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
        assert_eq!(prints.subject(&key).on(&limit), prints.key(b"alice").on(&limit));
        assert_ne!(prints.subject(&key).on(&limit), prints.key(key.as_bytes()).on(&limit));
        for name in ["user", "ke", "keys", ""] {
            let other = Subject::new([(name, Value::Clear(b"alice"))], &NoSecrets);
            assert_ne!(
                prints.subject(&key).on(&limit),
                prints.subject(&other).on(&limit),
                "{name}"
            );
        }
    }

    #[test]
    fn subjects_of_any_length_have_one_fingerprint() {
        let (prints, limit) = (Fingerprinter::random(), limit("core"));
        for length in 0..300 {
            let one = subject(&"n".repeat(length));
            let other = subject(&"n".repeat(length + 1));
            assert_eq!(prints.subject(&one).on(&limit), prints.subject(&one.clone()).on(&limit));
            assert_ne!(prints.subject(&one).on(&limit), prints.subject(&other).on(&limit));
        }
    }

    #[test]
    fn subjects_are_spread_over_all_shards() {
        let prints = Fingerprinter::random();
        let shard = |number: u32| prints.key(&number.to_le_bytes()).shard(488);
        let used: std::collections::HashSet<_> = (0..10_000).map(shard).collect();
        assert!(used.len() == 488 && used.iter().all(|shard| *shard < 488));
    }

    #[test]
    fn two_stores_do_not_share_a_key() {
        let (limit, subject) = (limit("core"), subject("user"));
        let [one, other] = [Fingerprinter::random(), Fingerprinter::random()];
        assert_ne!(one.subject(&subject).on(&limit), other.subject(&subject).on(&limit));
    }
}
