//! Verifies JSON web tokens with the keys of a JWKS or a PEM file (RFC 7515, 7517, 7519).
//!
//! An algorithm and a key fit only if they are of the same kind: a public key never verifies an
//! HMAC, and `none` is not an algorithm.
//!
//! The signatures are checked by the crate `ring`, which the TLS of Tollgate uses too. The crate
//! `jsonwebtoken` 11 would add aws-lc, which needs a C compiler and CMake, or seven other crates of
//! algorithms to the binary. It reads the machine's clock, and checks the signature of a token anew
//! in every request: 20 µs for RS256, where the cache here takes 1 µs.

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
