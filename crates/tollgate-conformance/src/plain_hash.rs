//! A hash for subjects of tests.

use tollgate_core::KeyedHash;

/// The hash function FNV-1a with 128 bits, without a key. A hash is the same in every run, which
/// tests need. A deployment must never use this function, because anyone can compute the hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainHash;

impl KeyedHash for PlainHash {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let fold = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
        bytes.iter().fold(BASIS, fold).to_be_bytes()
    }
}
