//! Tests with genuine and forged tokens.

mod rsa;
mod signatures;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use tollgate_jwt::{Algorithm, Expected, Keys, MAX_TOKEN_BYTES, Refusal, Verifier};

/// The modulus of a key whose private part was not kept.
const MODULUS: &str = "1x1sfLPVBUTupS7upm4atiLnFiycLUN5-TG20eUVkCnRqtG0z8O7Vyh2KFNaD29bdcRnBO1HkkqKi4Dog6oUXEnyeRSnNoI_JvAIQMiA8ZcRaw_NC4hzEd79FKNG3D81Pt2WyN7caIwu-WYznKoaffOsyglyF0hYuU_hyDwYZ9VbR5CBuZrjMWDWsMA6Jtgi9bop-g9OqGfgN4wNpY3rKMQJ6QSabpqVv0PxSQ-KPCHP_2FGRr7b8e0SLcIaWklgm8piu3OpmcrfkpW0eIySxkuIPAqtOpTFO0HX99YgtbhkthV3pjyyAOfraKhA2Pd6GJPome4pGPeqUOLopr-8mQ";
/// A token that the key with the modulus `MODULUS` signed. The subject is ann, the tenant is acme,
/// and the expiry is 2000.
const RS256: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJzdWIiOiJhbm4iLCJleHAiOjIwMDAsInJlYWxtIjp7InRlbmFudCI6ImFjbWUifX0.XdFm8C52BUMviCwfZtgoDljkx9YluSMioY2HdCo5TK6R_SCbWo0eS5whSdmx_H7H-3YRyWYCk2U6_eXWk3X9X3InWCumFck33k8J1joqBU6fZ2zo1phXm3sfuRJ_XW8e0sPmfytsviSW6VJuUsaByIBpFB8jdPxz5ieMYV-jxL7ZlVfmEh8jDCUlEmRPuBfL_qcqC6VLDmI9x9r5olVBDrnZ0dSuC3sMSVI_54JUDocy-H5Tj2F0RQrs7EwOl1xzo2_BuxkiPSWn-rpEndoU6IYHns7SHmN-L-Ao_Y7S9IOcHnWcRAlFqz9kg23zeKZz1BaH30A9f3RywFbIZjN3dw";
const SECRET: &[u8] = b"a secret of thirty-two bytes, ok";

fn every_algorithm() -> Vec<Algorithm> {
    Algorithm::ALL.iter().map(|(_, algorithm)| *algorithm).collect()
}

fn verifier() -> Verifier {
    expecting(Expected { leeway: 10, ..Expected::default() })
}

fn expecting(expected: Expected) -> Verifier {
    let secret = URL_SAFE_NO_PAD.encode(SECRET);
    let jwks = format!(
        r#"{{"keys":[{{"kty":"RSA","kid":"r","n":"{MODULUS}","e":"AQAB"}},{{"kty":"oct","kid":"s","k":"{secret}"}}]}}"#
    );
    let keys = Keys::from_jwks(&jwks).expect("the keys are valid");
    Verifier::new(keys, every_algorithm(), expected).expect("random bytes")
}

fn hs256(secret: &[u8], header: &str, claims: &str) -> String {
    let encode = |text: &[u8]| URL_SAFE_NO_PAD.encode(text);
    let message = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signature = encode(hmac::sign(&key, message.as_bytes()).as_ref());
    format!("{message}.{signature}")
}

fn refusal(token: &str) -> Refusal {
    verifier().verify(token, 1_000).expect_err("the token is not accepted")
}

const HEADER: &str = r#"{"alg":"HS256","kid":"s"}"#;
const CLAIMS: &str = r#"{"sub":"ann","exp":2000}"#;

#[test]
fn genuine_tokens_give_their_claims() {
    let claims = verifier().verify(RS256, 1_000).expect("RS256");
    assert_eq!(claims.value(&["sub"]).as_deref(), Some("ann"));
    assert_eq!(claims.value(&["realm", "tenant"]).as_deref(), Some("acme"));
    assert_eq!(claims.value(&["realm"]), None);
    assert!(verifier().verify(&hs256(SECRET, HEADER, CLAIMS), 1_000).is_ok());
}

#[test]
fn a_public_key_is_never_a_secret() {
    // A common attack: an HMAC token that uses the published text of a public key as its secret.
    let published = hs256(rsa::PEM.as_bytes(), r#"{"alg":"HS256"}"#, CLAIMS);
    let keys = Keys::from_pem(rsa::PEM).expect("the key is valid");
    let verifier = Verifier::new(keys, every_algorithm(), Expected::default());
    let verifier = verifier.expect("random bytes");
    assert_eq!(verifier.verify(&published, 1_000), Err(Refusal::UnknownKey));

    let modulus = URL_SAFE_NO_PAD.decode(MODULUS).expect("base64url");
    let forged = hs256(&modulus, r#"{"alg":"HS256","kid":"r"}"#, CLAIMS);
    assert_eq!(refusal(&forged), Refusal::Signature);
}

#[test]
fn none_is_not_an_algorithm() {
    for alg in ["none", "None", "NONE", ""] {
        let header = format!(r#"{{"alg":"{alg}","kid":"s"}}"#);
        let signed = hs256(SECRET, &header, CLAIMS);
        assert_eq!(refusal(&signed), Refusal::Algorithm);
        let (message, _) = signed.rsplit_once('.').expect("a signature");
        assert_eq!(refusal(&format!("{message}.")), Refusal::Algorithm);
    }
}

#[test]
fn other_keys_times_and_forms_are_refused() {
    let with = |header, claims| refusal(&hs256(SECRET, header, claims));
    assert_eq!(with(r#"{"alg":"HS256","kid":"x"}"#, CLAIMS), Refusal::UnknownKey);
    assert_eq!(with(r#"{"alg":"HS256","kid":"s","crit":["b64"]}"#, CLAIMS), Refusal::Malformed);
    assert_eq!(with(HEADER, r#"{"sub":"ann"}"#), Refusal::Expired);
    assert_eq!(with(HEADER, r#"{"exp":990}"#), Refusal::Expired);
    assert_eq!(with(HEADER, r#"{"exp":2000,"nbf":1011}"#), Refusal::NotYetValid);
    assert!(verifier().verify(&hs256(SECRET, HEADER, r#"{"exp":991,"nbf":1010}"#), 1_000).is_ok());
    assert_eq!(refusal(&hs256(&[7; 32], HEADER, CLAIMS)), Refusal::Signature);
    assert_eq!(refusal(&"a".repeat(MAX_TOKEN_BYTES + 1)), Refusal::TooLong);
    assert_eq!(refusal("a.b"), Refusal::Malformed);
    assert_eq!(refusal(&format!("{RS256}.x")), Refusal::Malformed);
}

#[test]
fn a_token_without_a_kid_needs_one_key_for_its_algorithm() {
    let token = hs256(SECRET, r#"{"alg":"HS256"}"#, CLAIMS);
    assert!(verifier().verify(&token, 1_000).is_ok(), "the other key is of another kind");
    let secret = URL_SAFE_NO_PAD.encode(SECRET);
    let jwk = |kid: u8| format!(r#"{{"kty":"oct","kid":"{kid}","k":"{secret}"}}"#);
    let keys = Keys::from_jwks(&format!(r#"{{"keys":[{},{}]}}"#, jwk(1), jwk(2)));
    let keys = keys.expect("the keys are valid");
    let two = Verifier::new(keys, every_algorithm(), Expected::default()).expect("random bytes");
    assert_eq!(two.verify(&token, 1_000), Err(Refusal::UnknownKey));
}

#[test]
fn issuer_and_audience_are_checked() {
    let verifier =
        expecting(Expected { issuer: Some("i".into()), audience: Some("a".into()), leeway: 0 });
    let check = |claims| verifier.verify(&hs256(SECRET, HEADER, claims), 1_000).err();
    assert_eq!(check(r#"{"exp":2000,"aud":"a"}"#), Some(Refusal::Issuer));
    assert_eq!(check(r#"{"exp":2000,"iss":"i","aud":["b"]}"#), Some(Refusal::Audience));
    assert_eq!(check(r#"{"exp":2000,"iss":"i","aud":["b","a"]}"#), None);
}
