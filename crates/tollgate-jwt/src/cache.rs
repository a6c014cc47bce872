//! The cache of tokens with a verified signature.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use ring::{hmac, rand};

use crate::keys::KeyError;

/// The maximum number of tokens in the cache.
pub const MAX_CACHED_TOKENS: usize = 4096;

/// The hash of a token under the secret key of the cache.
pub(crate) type TokenHash = [u8; 32];

/// A map from the keyed hash of each verified token to the encoded claims of the token.
pub(crate) struct Cache {
    key: hmac::Key,
    generations: Mutex<Generations>,
}

/// The entries of the cache in two maps. When `recent` is full, `recent` replaces `old`, and an
/// empty map replaces `recent`. A token in `old` moves to `recent` when the token is used.
#[derive(Default)]
struct Generations {
    recent: HashMap<TokenHash, Box<[u8]>>,
    old: HashMap<TokenHash, Box<[u8]>>,
}

impl fmt::Debug for Cache {
    /// Writes only the number of tokens, so the output does not contain claims.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({})", self.len())
    }
}

impl Cache {
    pub(crate) fn new() -> Result<Self, KeyError> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new());
        let key = key.map_err(|_| KeyError::new("the system gave no random bytes"))?;
        Ok(Self { key, generations: Mutex::default() })
    }

    pub(crate) fn hash(&self, token: &str) -> TokenHash {
        let mut hash = [0; 32];
        hash.copy_from_slice(hmac::sign(&self.key, token.as_bytes()).as_ref());
        hash
    }

    /// Returns the encoded claims of the token with this hash, or `None` if the token is not in the
    /// cache.
    pub(crate) fn get(&self, hash: &TokenHash) -> Option<Box<[u8]>> {
        let mut all = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = all.recent.get(hash) {
            return Some(claims.clone());
        }
        let claims = all.old.remove(hash)?;
        all.insert(*hash, claims.clone());
        Some(claims)
    }

    pub(crate) fn insert(&self, hash: TokenHash, claims: Box<[u8]>) {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, claims);
    }

    pub(crate) fn len(&self) -> usize {
        let all = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        all.recent.len() + all.old.len()
    }
}

impl Generations {
    fn insert(&mut self, hash: TokenHash, claims: Box<[u8]>) {
        if self.recent.len() >= MAX_CACHED_TOKENS / 2 {
            self.old = std::mem::take(&mut self.recent);
        }
        self.recent.insert(hash, claims);
    }
}
