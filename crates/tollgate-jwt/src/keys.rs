//! The keys of a JWKS or a PEM file.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::algorithm::{Algorithm, Material};
use crate::pem;

/// The maximum number of keys in a set.
const MAX_KEYS: usize = 64;

/// The maximum size in bytes of a file with keys: 1 MiB.
pub const MAX_KEY_FILE_BYTES: u64 = 1 << 20;

/// The hint in error messages that lists the supported key types.
const USABLE: &str = "use `kty` RSA, EC (P-256, P-384), OKP (Ed25519) or oct";

/// The reason why a set of keys is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError(String);

impl KeyError {
    pub(crate) fn new(what: &str) -> Self {
        Self(what.to_owned())
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyError {}

/// A set of keys that verify the signatures of tokens.
pub struct Keys(Vec<Key>);

impl fmt::Debug for Keys {
    /// Writes only the number of keys, so the output does not contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

/// A key with its name (`kid`). If the key states an algorithm, the key is used only with this
/// algorithm.
struct Key {
    kid: Option<String>,
    algorithm: Option<Algorithm>,
    material: Material,
}

impl Keys {
    /// Reads a JWKS, or the public key in a PEM text.
    ///
    /// # Errors
    ///
    /// As [`Self::from_jwks`] and [`Self::from_pem`].
    pub fn read(text: &str) -> Result<Self, KeyError> {
        if text.contains("-----BEGIN ") { Self::from_pem(text) } else { Self::from_jwks(text) }
    }

    /// Reads a PEM text with one public key (`BEGIN PUBLIC KEY`).
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the text has no key, several keys, another type of PEM block, or a key that
    /// is not supported.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let material = pem::read(text).map_err(|what| KeyError(format!("the PEM file {what}")))?;
        Ok(Self(vec![Key { kid: None, algorithm: None, material }]))
    }

    /// Reads a JWKS. Ignores keys that are not for signatures, keys of an unknown type, and keys
    /// for an unknown algorithm (RFC 7517, section 5).
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a key is malformed or too weak, if two keys have the same `kid`, or if the
    /// set has no usable key or more than 64 keys.
    pub fn from_jwks(text: &str) -> Result<Self, KeyError> {
        let set: Value = serde_json::from_str(text)
            .map_err(|error| KeyError(format!("the JWKS is not JSON: {error}")))?;
        let listed = set.get("keys").and_then(Value::as_array);
        let listed = listed.ok_or_else(|| KeyError("the JWKS has no list `keys`".into()))?;
        if listed.is_empty() || listed.len() > MAX_KEYS {
            let count = listed.len();
            return Err(KeyError(format!("the JWKS has {count} keys: it needs 1 to {MAX_KEYS}")));
        }
        let mut keys: Vec<Key> = Vec::with_capacity(listed.len());
        for (index, jwk) in listed.iter().enumerate() {
            let key = Key::read(jwk)
                .map_err(|what| KeyError(format!("key {} of the JWKS: {what}", index + 1)))?;
            let Some(key) = key else { continue };
            if key.kid.is_some() && keys.iter().any(|other| other.kid == key.kid) {
                return Err(KeyError(format!("key {}: its `kid` is used twice", index + 1)));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(KeyError(format!("the JWKS has no usable key: {USABLE}")));
        }
        Ok(Self(keys))
    }

    /// Returns whether at least one key of the set can verify signatures of at least one of
    /// `algorithms`.
    #[must_use]
    pub fn fit(&self, algorithms: &[Algorithm]) -> bool {
        self.0.iter().any(|key| algorithms.iter().any(|algorithm| key.fits(*algorithm)))
    }

    /// Returns whether the key for a token made the signature of `message`. `kid` is the name of
    /// the key, if the token states a name. Returns `None` if the set has no key for the token.
    ///
    /// If the token states a name, its key is the key with this name. If the set consists of one
    /// key without a name, this key is used for every stated name. If the token states no name, its
    /// key is the only key of the set that fits `algorithm`. If no key or more than one key fits,
    /// the result is `None`.
    pub(crate) fn verify(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        let key = match (kid, self.0.as_slice()) {
            (Some(_), [only]) if only.kid.is_none() => only,
            (Some(kid), keys) => keys.iter().find(|key| key.kid.as_deref() == Some(kid))?,
            (None, keys) => {
                let mut fitting = keys.iter().filter(|key| key.fits(algorithm));
                match (fitting.next(), fitting.next()) {
                    (Some(only), None) => only,
                    _ => return None,
                }
            }
        };
        Some(key.fits(algorithm) && key.material.verify(algorithm, message, signature))
    }
}

impl Key {
    /// Returns whether the key can verify signatures of `algorithm`.
    fn fits(&self, algorithm: Algorithm) -> bool {
        self.algorithm.is_none_or(|only| only == algorithm) && self.material.fits(algorithm)
    }

    /// Reads one key of a JWKS. Returns `None` if the key is for another purpose or not supported,
    /// and an error if the key is malformed or too weak.
    fn read(jwk: &Value) -> Result<Option<Self>, String> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|usage| usage != "sig") {
            return Ok(None);
        }
        if let Some(operations) = jwk.get("key_ops").and_then(Value::as_array)
            && !operations.iter().any(|operation| operation == "verify")
        {
            return Ok(None);
        }
        let algorithm = match text("alg").map(Algorithm::named) {
            Some(None) => return Ok(None),
            Some(known) => known,
            None => None,
        };
        let bytes = |name: &str| {
            let encoded = text(name).ok_or_else(|| format!("`{name}` is missing"))?;
            URL_SAFE_NO_PAD.decode(encoded).map_err(|_| format!("`{name}` is not base64url"))
        };
        let point = |length: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            if x.len() != length || y.len() != length {
                return Err(format!("`x` and `y` need {length} bytes each"));
            }
            Ok([&[4][..], &x, &y].concat())
        };
        let material = match (text("kty"), text("crv")) {
            (Some("RSA"), _) => Material::rsa(&bytes("n")?, &bytes("e")?)?,
            (Some("EC"), Some("P-256")) => Material::P256(point(32)?),
            (Some("EC"), Some("P-384")) => Material::P384(point(48)?),
            (Some("OKP"), Some("Ed25519")) => Material::ed25519(bytes("x")?)?,
            (Some("oct"), _) => Material::secret(bytes("k")?)?,
            _ => return Ok(None),
        };
        Ok(Some(Self { kid: text("kid").map(str::to_owned), algorithm, material }))
    }
}
