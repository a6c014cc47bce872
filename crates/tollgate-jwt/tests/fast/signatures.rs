//! Tests of the signatures of all algorithms, key files, claims, times and the cache.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _,
};
use tollgate_jwt::{
    Algorithm, Expected, Keys, MAX_CACHED_TOKENS, MAX_CLAIM_BYTES, Refusal, Verifier,
};

use crate::rsa::{MODULUS, PEM, SIGNATURES};
use crate::{CLAIMS, HEADER, SECRET, every_algorithm, hs256, verifier};

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn message(algorithm: &str, kid: &str) -> String {
    let header = format!(r#"{{"alg":"{algorithm}","kid":"{kid}"}}"#);
    format!("{}.{}", encode(header.as_bytes()), encode(CLAIMS.as_bytes()))
}

fn with(keys: Keys) -> Verifier {
    Verifier::new(keys, every_algorithm(), Expected::default()).expect("random bytes")
}

/// Returns the PEM text of a public key. The encoding of the key starts with `prefix`, in
/// hexadecimal.
fn pem(prefix: &str, key: &[u8]) -> String {
    let byte = |at: usize| u8::from_str_radix(&prefix[at..at + 2], 16).expect("hexadecimal");
    let mut der: Vec<u8> = (0..prefix.len()).step_by(2).map(byte).collect();
    der.extend_from_slice(key);
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

/// Tokens, each with the name of its algorithm.
type Tokens = Vec<(&'static str, String)>;

/// Returns a key of each type, as JWK and as PEM, with a token for each algorithm of the key.
fn genuine() -> Vec<(String, Option<String>, Tokens)> {
    let random = SystemRandom::new();
    let mut all = Vec::new();
    let jwk = format!(r#"{{"kty":"RSA","kid":"r","n":"{MODULUS}","e":"AQAB"}}"#);
    let token = |(name, signature): &(&'static str, &str)| {
        (*name, format!("{}.{signature}", message(name, "r")))
    };
    all.push((jwk, Some(PEM.to_owned()), SIGNATURES.iter().map(token).collect()));
    for (name, curve, signing, prefix) in [
        (
            "ES256",
            "P-256",
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            "3059301306072a8648ce3d020106082a8648ce3d030107034200",
        ),
        (
            "ES384",
            "P-384",
            &ECDSA_P384_SHA384_FIXED_SIGNING,
            "3076301006072a8648ce3d020106052b81040022036200",
        ),
    ] {
        let document = EcdsaKeyPair::generate_pkcs8(signing, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(signing, document.as_ref(), &random).expect("a key");
        let public = pair.public_key().as_ref();
        let (x, y) = public[1..].split_at(public.len() / 2);
        let (x, y) = (encode(x), encode(y));
        let jwk = format!(r#"{{"kty":"EC","crv":"{curve}","kid":"{curve}","x":"{x}","y":"{y}"}}"#);
        let message = message(name, curve);
        let signature = pair.sign(&random, message.as_bytes()).expect("a signature");
        let token = format!("{message}.{}", encode(signature.as_ref()));
        all.push((jwk, Some(pem(prefix, public)), vec![(name, token)]));
    }
    let document = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key");
    let public = pair.public_key().as_ref();
    let jwk = format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"{}"}}"#, encode(public));
    let message_ed = message("EdDSA", "ed");
    let token = format!("{message_ed}.{}", encode(pair.sign(message_ed.as_bytes()).as_ref()));
    let text = pem("302a300506032b6570032100", public);
    all.push((jwk, Some(text), vec![("EdDSA", token)]));
    let secret = [9; 64];
    let jwk = format!(r#"{{"kty":"oct","kid":"s","k":"{}"}}"#, encode(&secret));
    let hashes =
        [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)];
    let token = |(name, algorithm): (&'static str, _)| {
        let message = message(name, "s");
        let signature = hmac::sign(&hmac::Key::new(algorithm, &secret), message.as_bytes());
        (name, format!("{message}.{}", encode(signature.as_ref())))
    };
    all.push((jwk, None, hashes.map(token).to_vec()));
    all
}

#[test]
fn genuine_signatures_of_every_algorithm_are_accepted() {
    let genuine = genuine();
    let jwks: Vec<&str> = genuine.iter().map(|(jwk, ..)| jwk.as_str()).collect();
    let jwks = format!(r#"{{"keys":[{}]}}"#, jwks.join(","));
    let mut tried = 0;
    for (_, pem, tokens) in &genuine {
        for (name, token) in tokens {
            let algorithm = Algorithm::named(name).expect("an algorithm");
            let one = |keys| {
                Verifier::new(keys, vec![algorithm], Expected::default()).expect("random bytes")
            };
            let keys = || Keys::read(&jwks).expect("the keys are valid");
            assert!(one(keys()).verify(token, 1_000).is_ok(), "{name} by a JWKS");
            if let Some(pem) = pem {
                let keys = Keys::read(pem).expect("the key is valid");
                assert!(one(keys).verify(token, 1_000).is_ok(), "{name} by PEM");
            }
            let others = every_algorithm().into_iter().filter(|other| *other != algorithm);
            let others = Verifier::new(keys(), others.collect(), Expected::default());
            let refused = others.expect("random bytes").verify(token, 1_000);
            assert_eq!(refused, Err(Refusal::Algorithm), "{name} is not accepted");
            tried += 1;
        }
    }
    assert_eq!(tried, Algorithm::ALL.len());
}

#[test]
fn changed_claims_and_signatures_are_refused_for_every_algorithm() {
    for (jwk, _, tokens) in genuine() {
        let verifier = with(Keys::from_jwks(&format!(r#"{{"keys":[{jwk}]}}"#)).expect("a key"));
        for (name, token) in tokens {
            let (message, signature) = token.rsplit_once('.').expect("a signature");
            let (header, _) = message.split_once('.').expect("a header");
            let claims = encode(br#"{"sub":"eve","exp":2000}"#);
            let forged = format!("{header}.{claims}.{signature}");
            assert_eq!(verifier.verify(&forged, 1_000), Err(Refusal::Signature), "{name}");
            let mut bytes = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
            bytes[0] ^= 1;
            let forged = format!("{message}.{}", encode(&bytes));
            assert_eq!(verifier.verify(&forged, 1_000), Err(Refusal::Signature), "{name}");
            let empty = verifier.verify(&format!("{message}."), 1_000);
            assert_eq!(empty, Err(Refusal::Signature), "{name}");
        }
        assert_eq!(verifier.cached(), 0);
    }
}

#[test]
fn keys_that_are_not_supported_are_ignored_unless_none_is_left() {
    let unusable = [
        r#"{"kty":"EC","crv":"P-521","kid":"a","x":"AA","y":"AA"}"#,
        r#"{"kty":"AKP","alg":"ML-DSA-44","kid":"b","pub":"AA"}"#,
        r#"{"kty":"RSA","use":"enc","kid":"c","n":"AA","e":"AQAB"}"#,
        r#"{"kty":"RSA","alg":"RSA-OAEP","kid":"d","n":"AA","e":"AQAB"}"#,
        r#"{"kty":"RSA","key_ops":["encrypt"],"kid":"e","n":"AA","e":"AQAB"}"#,
    ]
    .join(",");
    let error = Keys::from_jwks(&format!(r#"{{"keys":[{unusable}]}}"#)).expect_err("no key");
    assert!(error.to_string().contains("no usable key"), "{error}");
    let usable = format!(r#"{{"kty":"oct","kid":"s","k":"{}"}}"#, encode(SECRET));
    let keys = Keys::from_jwks(&format!(r#"{{"keys":[{unusable},{usable}]}}"#)).expect("a key");
    assert!(with(keys).verify(&hs256(SECRET, HEADER, CLAIMS), 1_000).is_ok());
}

#[test]
fn malformed_key_files_are_mistakes() {
    for (text, what) in [
        ("", "is not JSON"),
        ("{}", "no list `keys`"),
        (r#"{"keys":[{"kty":"oct","k":"AA"}]}"#, "32 bytes"),
        (r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#, "2048"),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519"}]}"#, "`x` is missing"),
        ("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n", "PUBLIC KEY"),
        ("-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n", "malformed"),
        ("-----BEGIN PUBLIC KEY-----\n", "PEM"),
        (&format!("{PEM}{PEM}"), "several keys"),
    ] {
        let error = Keys::read(text).expect_err("a mistake").to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn times_may_have_fractions() {
    let check = |claims: &str, now| verifier().verify(&hs256(SECRET, HEADER, claims), now).err();
    assert_eq!(check(r#"{"exp":2000.9,"nbf":999.5}"#, 2_009), None);
    assert_eq!(check(r#"{"exp":2000.9}"#, 2_010), Some(Refusal::Expired));
    assert_eq!(check(r#"{"exp":2000,"nbf":1000.5}"#, 990), Some(Refusal::NotYetValid));
    assert_eq!(check(r#"{"exp":2000,"nbf":1000.5}"#, 991), None);
    for exp in ["-1", "1e300", "\"2000\"", "null", "true", "[2000]"] {
        let claims = format!(r#"{{"exp":{exp}}}"#);
        assert_eq!(check(&claims, 1_000), Some(Refusal::Expired), "{exp}");
    }
}

#[test]
fn claims_are_strings_integers_or_booleans_of_bounded_length() {
    let long = "a".repeat(MAX_CLAIM_BYTES + 1);
    let fits = "a".repeat(MAX_CLAIM_BYTES);
    let claims = format!(
        r#"{{"exp":2000,"text":"é","whole":7,"flag":true,"part":1.5,"none":null,"empty":"",
            "list":["a"],"a.b":"dotted","long":"{long}","fits":"{fits}"}}"#
    );
    let claims = verifier().verify(&hs256(SECRET, HEADER, &claims), 1_000).expect("valid");
    let value = |name: &str| claims.value(&[name]);
    assert_eq!(value("text").as_deref(), Some("é"));
    assert_eq!(value("whole").as_deref(), Some("7"));
    assert_eq!(value("flag").as_deref(), Some("true"));
    assert_eq!(value("a.b").as_deref(), Some("dotted"));
    assert_eq!(value("fits"), Some(fits));
    for absent in ["part", "none", "empty", "list", "long", "missing"] {
        assert_eq!(value(absent), None, "{absent}");
    }
    assert_eq!(claims.value(&["a", "b"]), None);
    assert_eq!(claims.value::<&str>(&[]), None);
}

#[test]
fn unverified_tokens_are_read_but_expire() {
    let verifier = Verifier::unverified(Expected::default());
    let forged = hs256(&[7; 32], r#"{"alg":"ES512"}"#, CLAIMS);
    let claims = verifier.verify(&forged, 1_000).expect("signatures are not checked");
    assert_eq!(claims.value(&["sub"]).as_deref(), Some("ann"));
    assert_eq!(verifier.verify(&forged, 2_000), Err(Refusal::Expired));
    let none = hs256(&[7; 32], r#"{"alg":"nOnE"}"#, CLAIMS);
    assert_eq!(verifier.verify(&none, 1_000), Err(Refusal::Algorithm));
    assert_eq!(verifier.verify("a.b.c", 1_000), Err(Refusal::Malformed));
}

#[test]
fn cached_tokens_expire_and_forged_ones_are_not_cached() {
    let verifier = verifier();
    let token = hs256(SECRET, HEADER, r#"{"sub":"ann","exp":2000,"nbf":500}"#);
    let first = verifier.verify(&token, 1_000);
    assert!(first.is_ok());
    assert_eq!(verifier.cached(), 1);
    assert_eq!(verifier.verify(&token, 1_000), first);
    assert_eq!(verifier.verify(&token, 2_010), Err(Refusal::Expired));
    assert_eq!(verifier.verify(&token, 489), Err(Refusal::NotYetValid));
    let (message, _) = token.rsplit_once('.').expect("a signature");
    let forged = format!("{message}.{}", encode(&[0; 32]));
    assert_eq!(verifier.verify(&forged, 1_000), Err(Refusal::Signature));
    assert_eq!(verifier.cached(), 1);
}

#[test]
fn the_cache_is_bounded_and_keeps_what_is_used() {
    let verifier = verifier();
    let token =
        |number: usize| hs256(SECRET, HEADER, &format!(r#"{{"sub":"user {number}","exp":2000}}"#));
    let used = token(0);
    assert!(verifier.verify(&used, 1_000).is_ok());
    for number in 1..MAX_CACHED_TOKENS * 2 {
        let claims = verifier.verify(&token(number), 1_000).expect("valid");
        assert_eq!(claims.value(&["sub"]), Some(format!("user {number}")));
        let before = verifier.cached();
        assert!(before <= MAX_CACHED_TOKENS);
        let claims = verifier.verify(&used, 1_000).expect("valid");
        assert_eq!(claims.value(&["sub"]).as_deref(), Some("user 0"));
        assert!(verifier.cached() <= before, "the token that is used was not in the cache");
    }
}
