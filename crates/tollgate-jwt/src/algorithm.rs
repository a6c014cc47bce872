//! Signature algorithms, and the keys that each algorithm needs.

use ring::hmac;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};

/// A signature algorithm (RFC 7518, section 3.1, and RFC 8037). The algorithm `none` is not
/// supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the RFC")]
pub enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
    HS256,
    HS384,
    HS512,
}

impl Algorithm {
    /// All algorithms and their names.
    pub const ALL: [(&'static str, Self); 12] = [
        ("RS256", Self::RS256),
        ("RS384", Self::RS384),
        ("RS512", Self::RS512),
        ("PS256", Self::PS256),
        ("PS384", Self::PS384),
        ("PS512", Self::PS512),
        ("ES256", Self::ES256),
        ("ES384", Self::ES384),
        ("EdDSA", Self::EdDSA),
        ("HS256", Self::HS256),
        ("HS384", Self::HS384),
        ("HS512", Self::HS512),
    ];

    /// The algorithms with a public key. The other algorithms (HMAC) use a shared secret.
    pub const PUBLIC: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
    ];

    /// Returns the name of the algorithm.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// Returns the algorithm with the name `name`. Names are case-sensitive.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm)
    }
}

/// The bytes of a key, by the type of the key.
pub(crate) enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Secret(Vec<u8>),
}

impl Material {
    pub(crate) fn rsa(n: &[u8], e: &[u8]) -> Result<Self, String> {
        // Some programs write a leading zero byte, which is the sign of a number in DER.
        let significant = |bytes: &[u8]| {
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            bytes[zeros..].to_vec()
        };
        let (n, e) = (significant(n), significant(e));
        if !(256..=1024).contains(&n.len()) {
            return Err("an RSA key needs 2048 to 8192 bits".into());
        }
        Ok(Self::Rsa { n, e })
    }

    pub(crate) fn ed25519(key: Vec<u8>) -> Result<Self, String> {
        if key.len() == 32 {
            Ok(Self::Ed25519(key))
        } else {
            Err("an Ed25519 key needs 32 bytes".into())
        }
    }

    pub(crate) fn secret(secret: Vec<u8>) -> Result<Self, String> {
        if secret.len() < 32 {
            return Err("a secret needs at least 32 bytes".into());
        }
        Ok(Self::Secret(secret))
    }

    /// Returns whether the key has the type and the length that the algorithm needs.
    pub(crate) fn fits(&self, algorithm: Algorithm) -> bool {
        use Algorithm::{
            ES256, ES384, EdDSA, HS256, HS384, HS512, PS256, PS384, PS512, RS256, RS384, RS512,
        };
        match algorithm {
            RS256 | RS384 | RS512 | PS256 | PS384 | PS512 => matches!(self, Self::Rsa { .. }),
            ES256 => matches!(self, Self::P256(_)),
            ES384 => matches!(self, Self::P384(_)),
            EdDSA => matches!(self, Self::Ed25519(_)),
            // RFC 7518, section 3.2, requires a secret that is at least as long as the hash.
            HS256 => matches!(self, Self::Secret(secret) if secret.len() >= 32),
            HS384 => matches!(self, Self::Secret(secret) if secret.len() >= 48),
            HS512 => matches!(self, Self::Secret(secret) if secret.len() >= 64),
        }
    }

    /// Returns whether `signature` is a valid signature of `message` with this key. Returns false
    /// if the algorithm needs another type of key.
    pub(crate) fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let public = |algorithm: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
        };
        match (self, algorithm) {
            (Self::Rsa { n, e }, _) => {
                let parameters = match algorithm {
                    Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
            (Self::P256(key), Algorithm::ES256) => public(&signature::ECDSA_P256_SHA256_FIXED, key),
            (Self::P384(key), Algorithm::ES384) => public(&signature::ECDSA_P384_SHA384_FIXED, key),
            (Self::Ed25519(key), Algorithm::EdDSA) => public(&signature::ED25519, key),
            (Self::Secret(secret), _) => {
                let algorithm = match algorithm {
                    Algorithm::HS256 => hmac::HMAC_SHA256,
                    Algorithm::HS384 => hmac::HMAC_SHA384,
                    Algorithm::HS512 => hmac::HMAC_SHA512,
                    _ => return false,
                };
                hmac::verify(&hmac::Key::new(algorithm, secret), message, signature).is_ok()
            }
            (Self::P256(_) | Self::P384(_) | Self::Ed25519(_), _) => false,
        }
    }
}
