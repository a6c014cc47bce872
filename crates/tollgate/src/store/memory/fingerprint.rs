//! What the store knows a subject by: a keyed hash, 128 bits wide.
//!
//! SipHash-1-3 under a random key: nobody outside can choose subjects that crowd one place of a
//! table, or two that share a fingerprint. Among 2^40 subjects the chance that any two collide is
//! about one in 2^49, so that the bytes of a subject need not be kept.

use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip128::{Hasher128, SipHasher13};
use tollgate_core::{ChargeId, Limit, Subject};

/// The keyed hash of one entry's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    /// Places the entry within its table.
    pub(super) place: u64,
    /// Chooses the shard.
    pub(super) rest: u64,
}

impl Fingerprint {
    /// Which of `count` shards is its home.
    pub(super) fn shard(self, count: usize) -> usize {
        ((u128::from(self.rest) * count as u128) >> 64) as usize
    }
}

/// Makes the fingerprints of one store, under a key that never leaves it.
pub(super) struct Fingerprinter(SipHasher13);

/// Sets what is fingerprinted apart: no two kinds share an input.
const CHARGED: u8 = 0;
const REFUNDED: u8 = 1;

impl Fingerprinter {
    /// With a key that the operating system's randomness chose.
    ///
    /// [`RandomState`] is seeded from it; what its hasher makes of two different inputs tells
    /// nothing of the one by the other.
    pub(super) fn random() -> Self {
        let source = RandomState::new();
        Self(SipHasher13::new_with_keys(source.hash_one(0_u8), source.hash_one(1_u8)))
    }

    /// Of what `subject` used of `limit`.
    pub(super) fn charged(&self, limit: &Limit, subject: &Subject) -> Fingerprint {
        let mut hasher = self.named(CHARGED, limit);
        hasher.write(subject.as_bytes());
        finish(&hasher)
    }

    /// Of the refund of the charge `id`.
    pub(super) fn refunded(&self, limit: &Limit, subject: &Subject, id: ChargeId) -> Fingerprint {
        let mut hasher = self.named(REFUNDED, limit);
        hasher.write(&id.0.to_le_bytes());
        hasher.write(subject.as_bytes());
        finish(&hasher)
    }

    /// The subject comes last, and what is before it bears its own length: no two names look alike.
    fn named(&self, kind: u8, limit: &Limit) -> SipHasher13 {
        let name = limit.name().as_bytes();
        let mut hasher = self.0;
        hasher.write_u64(name.len() as u64 | u64::from(kind) << 32);
        hasher.write(name);
        hasher
    }
}

fn finish(hasher: &SipHasher13) -> Fingerprint {
    let hash = hasher.finish128();
    Fingerprint { place: hash.h1, rest: hash.h2 }
}
