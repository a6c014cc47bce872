//! The reader of the claims of tokens, with the settings of a policy file.

use std::hash::Hasher as _;
use std::time::{SystemTime, UNIX_EPOCH};

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use tollgate_core::policy::ClaimReader;
use tollgate_jwt::Verifier;

/// The reader of the claims of tokens. It returns a claim only if `verifier` accepts the token at
/// the time of the request.
#[derive(Debug)]
pub(crate) struct TokenReader {
    verifier: Verifier,
    is_verified: bool,
    description: String,
    fingerprint: [u8; 16],
}

impl TokenReader {
    /// Creates a reader of the claims of tokens. `description` must describe all settings of the
    /// reader. Two readers are equal if their descriptions and their `keys` are equal. `keys` is
    /// the text of the file with the keys; if it is `None`, the reader does not verify tokens.
    pub(crate) fn new(verifier: Verifier, description: String, keys: Option<&str>) -> Self {
        let mut hasher = SipHasher13::new();
        for part in [&description, keys.unwrap_or_default()] {
            hasher.write_usize(part.len());
            hasher.write(part.as_bytes());
        }
        let fingerprint = hasher.finish128().as_bytes();
        Self { verifier, is_verified: keys.is_some(), description, fingerprint }
    }
}

impl ClaimReader for TokenReader {
    fn claim(&self, token: &[u8], path: &[Box<str>]) -> Option<String> {
        let token = str::from_utf8(token).ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        self.verifier.verify(token, now).ok()?.value(path)
    }

    fn is_verified(&self) -> bool {
        self.is_verified
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn fingerprint(&self) -> [u8; 16] {
        self.fingerprint
    }
}
