//! The key `jwt`: JSON web tokens with claims that are subjects.

use tollgate_jwt::Algorithm;

use crate::decode::{Duration, Flag, OneOrMore, Text, choices, keys};

keys! {
    /// JSON web tokens (JWT), whose claims can be subjects.
    struct Jwt as "tokens (JWT)" {
        /// The file with the keys that tokens are signed by: a JWKS, or one public key in PEM form. The path
        /// is relative to the directory of the policy file. A change of the file is a change of the policy.
        keys: Text,
        /// The accepted algorithms. By default all with public keys: RS256, RS384, RS512, PS256, PS384, PS512, ES256,
        /// ES384 and EdDSA. `HS256`, `HS384` and `HS512` need a shared secret in a JWKS, and must be listed.
        algorithms: OneOrMore<TokenAlgorithm>,
        /// The required value of the claim `iss`. By default any.
        issuer: Text,
        /// The required value in the claim `aud`. By default any.
        audience: Text,
        /// The tolerated difference of clocks for `exp` and `nbf`, at most `10m`. By default `30s`.
        leeway: Duration,
        /// The header with the token. By default `authorization`, with or without the word `Bearer`.
        header: Text,
        /// The cookie with the token, instead of a header.
        cookie: Text,
        /// Accepts tokens without a check of their signatures. Only for services behind a gateway that verifies
        /// every token. Without such a gateway, a client can send any claim. By default false.
        unverified: Flag,
    }
}

choices! {
    /// An algorithm of a token's signature.
    struct TokenAlgorithm(Algorithm) as "an algorithm of a signature" {
        /// RSA with PKCS #1 v1.5 and SHA-256.
        "RS256" => Algorithm::RS256,
        /// RSA with PKCS #1 v1.5 and SHA-384.
        "RS384" => Algorithm::RS384,
        /// RSA with PKCS #1 v1.5 and SHA-512.
        "RS512" => Algorithm::RS512,
        /// RSA with PSS and SHA-256.
        "PS256" => Algorithm::PS256,
        /// RSA with PSS and SHA-384.
        "PS384" => Algorithm::PS384,
        /// RSA with PSS and SHA-512.
        "PS512" => Algorithm::PS512,
        /// ECDSA with P-256 and SHA-256.
        "ES256" => Algorithm::ES256,
        /// ECDSA with P-384 and SHA-384.
        "ES384" => Algorithm::ES384,
        /// Ed25519.
        "EdDSA" => Algorithm::EdDSA,
        /// HMAC with SHA-256 and a shared secret of at least 32 bytes.
        "HS256" => Algorithm::HS256,
        /// HMAC with SHA-384 and a shared secret of at least 48 bytes.
        "HS384" => Algorithm::HS384,
        /// HMAC with SHA-512 and a shared secret of at least 64 bytes.
        "HS512" => Algorithm::HS512,
    }
}
