//! The verification of JSON web tokens.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::algorithm::Algorithm;
use crate::cache::Cache;
use crate::keys::{KeyError, Keys};

/// The maximum length of a token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// The maximum length of a claim's value, in bytes.
pub const MAX_CLAIM_BYTES: usize = 1024;

/// The reason why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token is longer than [`MAX_TOKEN_BYTES`].
    TooLong,
    /// The text is not a signed token in the compact serialization of RFC 7515, or the token has
    /// critical extensions.
    Malformed,
    /// The algorithm of the token is unknown, `none`, or not accepted.
    Algorithm,
    /// The set has no key for the token: no key has the `kid` of the token, or the token has no
    /// `kid` and either no key or more than one key fits.
    UnknownKey,
    /// The signature was not made with the key, or the algorithm does not match the type of the
    /// key.
    Signature,
    /// The token has no time in `exp`, or this time is in the past.
    Expired,
    /// The time in `nbf` is in the future, or `nbf` is not a time.
    NotYetValid,
    /// The claim `iss` does not have the value of [`Expected::issuer`].
    Issuer,
    /// The claim `aud` does not contain the value of [`Expected::audience`].
    Audience,
}

/// The requirements for a token in addition to a valid signature.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The required value of the claim `iss`. `None` accepts any value.
    pub issuer: Option<String>,
    /// The value that the claim `aud` must contain. `None` accepts any value.
    pub audience: Option<String>,
    /// The tolerated difference, in seconds, between the clock of the issuer and the clock of the
    /// time that is passed to [`Verifier::verify`].
    pub leeway: u64,
}

/// Verifies tokens, and caches the tokens with a valid signature.
#[derive(Debug)]
pub struct Verifier {
    signature: Option<Signature>,
    expected: Expected,
}

/// The verification of signatures: the keys, the accepted algorithms, and the cache of verified
/// tokens.
#[derive(Debug)]
struct Signature {
    keys: Keys,
    algorithms: Vec<Algorithm>,
    cache: Cache,
}

/// The claims of an accepted token.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims(Value);

impl Claims {
    /// Returns the claim at `path` as text, if the claim is a string, an integer or a boolean. Each
    /// element of `path` is the name of a member in the object that the previous element names.
    /// Returns `None` for other values, for empty strings, and for strings longer than
    /// [`MAX_CLAIM_BYTES`].
    #[must_use]
    pub fn value<Name: AsRef<str>>(&self, path: &[Name]) -> Option<String> {
        let mut names = path.iter();
        match names.try_fold(&self.0, |value, name| value.as_object()?.get(name.as_ref()))? {
            Value::String(text) if (1..=MAX_CLAIM_BYTES).contains(&text.len()) => {
                Some(text.clone())
            }
            Value::Number(number) if !number.is_f64() => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }
}

impl Verifier {
    /// Returns a verifier that accepts a token if one of `keys` signed the token with one of
    /// `algorithms`, and if the token meets `expected`.
    ///
    /// # Errors
    ///
    /// Returns an error if the system provides no random bytes for the key of the cache.
    pub fn new(
        keys: Keys,
        algorithms: Vec<Algorithm>,
        expected: Expected,
    ) -> Result<Self, KeyError> {
        let cache = Cache::new()?;
        Ok(Self { signature: Some(Signature { keys, algorithms, cache }), expected })
    }

    /// Returns a verifier that does not check signatures. Any client can forge tokens that this
    /// verifier accepts, unless a server in front of Tollgate has verified the signatures.
    #[must_use]
    pub fn unverified(expected: Expected) -> Self {
        Self { signature: None, expected }
    }

    /// Returns the number of tokens in the cache of tokens with a valid signature.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.signature.as_ref().map_or(0, |signature| signature.cache.len())
    }

    /// Returns the claims of a token that is valid at the time `now`, in Unix seconds. For a cached
    /// token, only the times, the issuer and the audience are checked again, not the signature.
    ///
    /// # Errors
    ///
    /// [`Refusal`], the reason why the token is not accepted.
    pub fn verify(&self, token: &str, now: u64) -> Result<Claims, Refusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Refusal::TooLong);
        }
        let Some(signature) = &self.signature else {
            let parts = Parts::of(token)?;
            if parts.algorithm.eq_ignore_ascii_case("none") {
                return Err(Refusal::Algorithm);
            }
            return self.accept(&parts.claims, now);
        };
        let hash = signature.cache.hash(token);
        if let Some(claims) = signature.cache.get(&hash) {
            return self.accept(&claims, now);
        }
        let parts = Parts::of(token)?;
        signature.check(&parts)?;
        let claims = self.accept(&parts.claims, now)?;
        signature.cache.insert(hash, parts.claims.into_boxed_slice());
        Ok(claims)
    }

    fn accept(&self, claims: &[u8], now: u64) -> Result<Claims, Refusal> {
        let claims = object(claims)?;
        self.expected.check(&claims, now)?;
        Ok(Claims(claims))
    }
}

impl Signature {
    fn check(&self, parts: &Parts<'_>) -> Result<(), Refusal> {
        let algorithm = Algorithm::named(&parts.algorithm)
            .filter(|algorithm| self.algorithms.contains(algorithm))
            .ok_or(Refusal::Algorithm)?;
        let kid = parts.kid.as_deref();
        match self.keys.verify(kid, algorithm, parts.message.as_bytes(), &parts.signature) {
            None => Err(Refusal::UnknownKey),
            Some(false) => Err(Refusal::Signature),
            Some(true) => Ok(()),
        }
    }
}

/// The parts of a token in the compact serialization.
struct Parts<'a> {
    message: &'a str,
    algorithm: String,
    kid: Option<String>,
    claims: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Result<Self, Refusal> {
        let (message, signature) = token.rsplit_once('.').ok_or(Refusal::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(Refusal::Malformed)?;
        let header = object(&decoded(header)?)?;
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(Refusal::Malformed);
        if header.get("crit").is_some() {
            return Err(Refusal::Malformed);
        }
        Ok(Self {
            message,
            algorithm: text(header.get("alg").ok_or(Refusal::Malformed)?)?,
            kid: header.get("kid").map(text).transpose()?,
            claims: decoded(claims)?,
            signature: decoded(signature)?,
        })
    }
}

impl Expected {
    /// Checks the times, the issuer and the audience in `claims`.
    fn check(&self, claims: &Value, now: u64) -> Result<(), Refusal> {
        let expiry = claims.get("exp").and_then(time).ok_or(Refusal::Expired)?.as_secs();
        if now >= expiry.saturating_add(self.leeway) {
            return Err(Refusal::Expired);
        }
        if let Some(start) = claims.get("nbf") {
            let start = time(start).ok_or(Refusal::NotYetValid)?;
            if Duration::from_secs(now.saturating_add(self.leeway)) < start {
                return Err(Refusal::NotYetValid);
            }
        }
        let is = |value: &Value, wanted: &str| value.as_str() == Some(wanted);
        if let Some(issuer) = &self.issuer
            && !claims.get("iss").is_some_and(|value| is(value, issuer))
        {
            return Err(Refusal::Issuer);
        }
        if let Some(audience) = &self.audience {
            let is_for = |value: &Value| match value.as_array() {
                Some(all) => all.iter().any(|one| is(one, audience)),
                None => is(value, audience),
            };
            if !claims.get("aud").is_some_and(is_for) {
                return Err(Refusal::Audience);
            }
        }
        Ok(())
    }
}

/// Parses a time since the Unix epoch, in seconds. The number can have a fraction (RFC 7519,
/// section 2).
fn time(value: &Value) -> Option<Duration> {
    match value.as_u64() {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => Duration::try_from_secs_f64(value.as_f64()?).ok(),
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Refusal::Malformed)
}

/// Parses a decoded part of the token, which must be a JSON object.
fn object(bytes: &[u8]) -> Result<Value, Refusal> {
    let value: Value = serde_json::from_slice(bytes).map_err(|_| Refusal::Malformed)?;
    if value.is_object() { Ok(value) } else { Err(Refusal::Malformed) }
}
