//! Verifies JSON web tokens with the keys of a JWKS or a PEM file (RFC 7515, 7517, 7519).
//!
//! A key verifies only signatures of the algorithms for its type. A public key never verifies an
//! HMAC, and the algorithm `none` is not supported.
//!
//! The crate `ring`, which also serves TLS in Tollgate, checks the signatures. The crate
//! `jsonwebtoken` 11 is not used, for three reasons. It would add to the binary either aws-lc,
//! which needs a C compiler and CMake, or seven other crates of algorithms. It reads the machine's
//! clock. It checks the signature of a token again in every request: such a check takes 20 µs for
//! RS256, and a lookup in the cache of this crate takes 1 µs.

mod algorithm;
mod cache;
mod keys;
mod pem;
mod verifier;

pub use algorithm::Algorithm;
pub use cache::MAX_CACHED_TOKENS;
pub use keys::{KeyError, Keys, MAX_KEY_FILE_BYTES};
pub use verifier::{Claims, Expected, MAX_CLAIM_BYTES, MAX_TOKEN_BYTES, Refusal, Verifier};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
