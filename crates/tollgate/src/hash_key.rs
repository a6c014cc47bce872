//! The deployment's secret key, under which credentials are hashed.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac::{self, HMAC_SHA256};
use siphasher::sip128::SipHasher24;
use tollgate_core::KeyedHash;

/// A secret 128-bit key of a deployment. Nodes that share a store must share the key. Nodes with
/// different keys hash a credential to different subjects, and refuse each other's receipts.
///
/// ```
/// use tollgate::{HashKey, Quota, RateLimiter};
///
/// let secret = HashKey::from_secret(b"the same on every node, 32 bytes");
/// let limiter = RateLimiter::builder()
///     .credential("api-key", "x-api-key")
///     .limit("burst", Quota::per_second(10).per("api-key"))
///     .hash_key(secret)
///     .build()?;
/// # let _ = limiter;
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone)]
pub struct HashKey {
    subjects: [u8; 16],
    /// A second key, for the nonces of receipts. A client that can choose credentials and sees
    /// their hashes learns nothing about this key.
    nonces: [u8; 16],
    /// The key that encrypts receipts.
    receipts: [u8; CHACHA_KEY],
}

/// The length of a key of ChaCha20-Poly1305, in bytes.
const CHACHA_KEY: usize = 32;

/// The bytes that encryption adds to a text: a nonce, and a tag that proves that a holder of the
/// key wrote the text.
pub(crate) const SEAL_BYTES: usize = NONCE_LEN + 16;

impl HashKey {
    /// Creates a key from the operating system's random numbers. No other process has this key.
    ///
    /// ```
    /// use tollgate::{HashKey, Quota, RateLimiter};
    ///
    /// let limiter = RateLimiter::per_key(Quota::per_second(10)).hash_key(HashKey::random());
    /// # let _ = limiter;
    /// ```
    #[must_use]
    pub fn random() -> Self {
        Self::with(random(), random(), &[random(), random()].concat())
    }

    /// Derives the key from a secret of any length. The same secret gives the same key on every
    /// node.
    ///
    /// ```
    /// use tollgate::{HashKey, Quota, RateLimiter};
    ///
    /// let key = HashKey::from_secret(b"the same on every node, 32 bytes");
    /// let limiter = RateLimiter::per_key(Quota::per_second(10)).hash_key(key);
    /// # let _ = limiter;
    /// ```
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> Self {
        Self::with(sip128(&[0; 16], secret), sip128(&[1; 16], secret), secret)
    }

    /// Creates a key from the keys for subjects and nonces. The key that encrypts receipts is
    /// derived from `secret` (HKDF, RFC 5869).
    fn with(subjects: [u8; 16], nonces: [u8; 16], secret: &[u8]) -> Self {
        let hmac = |key: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(HMAC_SHA256, key), text);
        let extracted = hmac(b"tollgate receipts", secret);
        let expanded = hmac(extracted.as_ref(), b"chacha20-poly1305\x01");
        let mut receipts = [0; CHACHA_KEY];
        receipts.copy_from_slice(expanded.as_ref());
        Self { subjects, nonces, receipts }
    }

    /// Returns the cipher that encrypts and decrypts receipts. Never returns `None`, because the
    /// key has the right length.
    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&CHACHA20_POLY1305, &self.receipts).ok().map(LessSafeKey::new)
    }

    /// Encrypts `bytes`, the content of a receipt, in place. The first `clear` bytes are not
    /// encrypted. Appends [`SEAL_BYTES`] bytes: the nonce, and the tag that proves that a node with
    /// this key wrote all bytes, including the first `clear` bytes.
    ///
    /// The nonce is a keyed hash of the bytes, so two different receipts never share a nonce.
    pub(crate) fn seal(&self, bytes: &mut Vec<u8>, clear: usize) {
        let hash = sip128(&self.nonces, bytes);
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&hash[..NONCE_LEN]);
        let (head, secret) = bytes.split_at_mut(clear);
        let unique = Nonce::assume_unique_for_key(nonce);
        let sealed = self.cipher().and_then(|cipher| {
            cipher.seal_in_place_separate_tag(unique, Aad::from(&*head), secret).ok()
        });
        // Encryption fails only for a text of more than 256 GiB.
        let Some(tag) = sealed else { return bytes.clear() };
        bytes.extend(nonce);
        bytes.extend(tag.as_ref());
    }

    /// Decrypts `bytes`, which [`seal`](Self::seal) wrote with the same `clear`, in place. Returns
    /// the decrypted bytes, without the first `clear` bytes. Returns `None` if `bytes` were changed
    /// or written with another key.
    pub(crate) fn unseal<'a>(&self, bytes: &'a mut [u8], clear: usize) -> Option<&'a mut [u8]> {
        let (head, rest) = bytes.split_at_mut_checked(clear)?;
        let split = rest.len().checked_sub(SEAL_BYTES)?;
        let nonce: [u8; NONCE_LEN] = *rest.get(split..)?.first_chunk()?;
        rest.copy_within(split + NONCE_LEN.., split);
        let rest = rest.get_mut(..split + SEAL_BYTES - NONCE_LEN)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.cipher()?.open_in_place(nonce, Aad::from(&*head), rest).ok()
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
    SipHasher24::new_with_key(key).hash(bytes).as_bytes()
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
    }

    #[test]
    fn a_hash_is_siphash_2_4_of_the_bytes_alone() {
        use siphasher::sip128::Hasher128;
        for length in 0..100_u8 {
            let bytes: Vec<u8> = (0..length).collect();
            let mut hasher = SipHasher24::new_with_key(&[7; 16]);
            hasher.write(&bytes);
            assert_eq!(sip128(&[7; 16], &bytes), hasher.finish128().as_bytes());
        }
    }

    #[test]
    fn a_sealed_text_is_read_with_its_key_alone_and_as_a_whole() {
        let (one, other) = (HashKey::from_secret(b"one"), HashKey::from_secret(b"other"));
        let mut sealed = b"v192.0.2.7".to_vec();
        one.seal(&mut sealed, 1);
        assert_eq!(sealed.len(), 10 + SEAL_BYTES);
        assert!(sealed[0] == b'v' && !sealed.windows(3).any(|part| part == b"192"));
        let read = |key: &HashKey, text: &[u8]| {
            key.unseal(&mut text.to_vec(), 1).map(|bytes| bytes.to_vec())
        };
        let again = HashKey::from_secret(b"one");
        assert_eq!(read(&again, &sealed).as_deref(), Some(&b"192.0.2.7"[..]));
        assert_eq!(read(&other, &sealed), None);
        assert_eq!(read(&HashKey::random(), &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(read(&one, &changed), None, "{at}");
            assert_eq!(read(&one, &sealed[..at]), None, "{at}");
        }
    }
}
