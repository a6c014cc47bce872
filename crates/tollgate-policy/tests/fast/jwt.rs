//! Claims of tokens as subjects of a policy file.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use tollgate_core::{Headers, KeyedHash, Policy, RequestAttributes};
use tollgate_policy::{LoadedPolicy, explain, load, named_files, parse, parse_relative_to};

const SECRET: &[u8] = b"a secret of thirty-two bytes, ok";

const POLICY: &str = "
jwt: { keys: keys/jwks.json, algorithms: HS256, issuer: https://id.example.com, audience: api }
subjects:
  user: { claim: sub }
  plan: { claim: /https:~1~1example.com~1plan }
  tenant: { claim: /realm/tenant }
  address: { client_address: {} }
  caller: { first_of: [user, address] }
limits:
  core: { quota: { by: plan, values: { free: 60, pro: 6_000 }, default: 30 }, window: 1h, per: caller }
  tenant: { quota: 90_000, window: 1h, per: tenant }
rules: [{ limits: [core, tenant] }]
";

struct Hash;

impl KeyedHash for Hash {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.len() as u8; 16]
    }
}

struct Authorization(String);

impl Headers for Authorization {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        (name == "authorization" && index == 0).then_some(self.0.as_bytes())
    }
}

fn jwks(secret: &[u8]) -> String {
    let secret = URL_SAFE_NO_PAD.encode(secret);
    format!(r#"{{ "keys": [{{ "kty": "oct", "kid": "a", "k": "{secret}" }}] }}"#)
}

/// Returns a token with the claims, signed by the secret.
fn token(secret: &[u8], claims: &str) -> String {
    let encode = |text: &[u8]| URL_SAFE_NO_PAD.encode(text);
    let message =
        format!("{}.{}", encode(br#"{"alg":"HS256","kid":"a"}"#), encode(claims.as_bytes()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    format!("{message}.{}", encode(hmac::sign(&key, message.as_bytes()).as_ref()))
}

/// The years 2096 and 2001 in Unix seconds.
const LATER: u64 = 4_000_000_000;
const BEFORE: u64 = 1_000_000_000;

fn claims(plan: &str, expiry: u64) -> String {
    format!(
        r#"{{"iss":"https://id.example.com","aud":["api"],"exp":{expiry},"sub":"ann",
           "https://example.com/plan":"{plan}","realm":{{"tenant":"acme"}}}}"#
    )
}

fn written(directory: &Path, policy: &str, jwks: &str) -> LoadedPolicy {
    fs::create_dir_all(directory.join("keys")).unwrap();
    fs::write(directory.join("keys/jwks.json"), jwks).unwrap();
    fs::write(directory.join("shop.yaml"), policy).unwrap();
    load(&directory.join("shop.yaml")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the charges of a request with the credential. Each charge is written as its limit, its
/// subject and the quota.
fn charges(policy: &Policy, credential: &str) -> Vec<String> {
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: Some([192, 0, 2, 7].into()),
        headers: &Authorization(credential.to_owned()),
    };
    let plan = policy.plan(&attributes, &Hash);
    let charges = plan.enforced.iter();
    charges
        .map(|one| {
            format!("{} {} {}", one.limit.name(), one.subject, one.limit.quota_per_window().0)
        })
        .collect()
}

#[test]
fn claims_of_an_accepted_token_name_the_user_the_plan_and_the_tenant() {
    let directory = tempfile::tempdir().unwrap();
    let loaded = written(directory.path(), POLICY, &jwks(SECRET));
    let pro = token(SECRET, &claims("pro", LATER));
    let expected = ["core caller=user:ann 6000", "tenant tenant=acme 90000"];
    assert_eq!(charges(&loaded.policy, &format!("Bearer {pro}")), expected);
    assert_eq!(charges(&loaded.policy, &pro), expected);
    let free = token(SECRET, &claims("free", LATER));
    assert_eq!(charges(&loaded.policy, &format!("bearer {free}"))[0], "core caller=user:ann 60");
}

#[test]
fn a_token_that_is_not_accepted_has_no_claims() {
    let directory = tempfile::tempdir().unwrap();
    let loaded = written(directory.path(), POLICY, &jwks(SECRET));
    let absent = charges(&loaded.policy, "");
    assert_eq!(absent[0], "core caller=address:192.0.2.7 30");
    let genuine = claims("pro", LATER);
    let (head, signature) = token(SECRET, &genuine).rsplit_once('.').map(own).unwrap();
    for credential in [
        token(&[7; 32], &genuine),
        token(SECRET, &claims("pro", BEFORE)),
        token(SECRET, &genuine.replace("id.example", "other.example")),
        token(SECRET, &genuine.replace("[\"api\"]", "\"web\"")),
        format!("{head}."),
        format!("{head}.{signature}.{signature}"),
        "a.b.c".to_owned(),
        format!("Basic {}", token(SECRET, &genuine)),
    ] {
        assert_eq!(charges(&loaded.policy, &credential), absent, "{credential}");
    }
}

fn own((one, other): (&str, &str)) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

#[test]
fn other_keys_are_another_policy() {
    let directory = tempfile::tempdir().unwrap();
    let one = written(directory.path(), POLICY, &jwks(SECRET));
    let same = written(directory.path(), POLICY, &jwks(SECRET));
    assert_eq!((&one.version, one.policy.dimensions()), (&same.version, same.policy.dimensions()));
    let other = written(directory.path(), POLICY, &jwks(&[7; 32]));
    assert_ne!(one.version, other.version);
    assert_ne!(one.policy.dimensions(), other.policy.dimensions());
    let path = directory.path().join("shop.yaml");
    let named = named_files(&path, POLICY.as_bytes());
    assert_eq!(named, [directory.path().join("keys/jwks.json")]);
}

#[test]
fn key_files_with_mistakes_are_reported_at_their_name() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("keys")).unwrap();
    let path = directory.path().join("shop.yaml");
    let message = |policy: &str, jwks: Option<&str>| {
        let file = directory.path().join("keys/jwks.json");
        match jwks {
            Some(jwks) => fs::write(file, jwks).unwrap(),
            None => drop(fs::remove_file(file)),
        }
        fs::write(&path, policy).unwrap();
        load(&path).unwrap_err().to_string()
    };
    let public = POLICY.replace(", algorithms: HS256", "");
    for (policy, jwks, expected) in [
        (POLICY, None, "cannot read"),
        (POLICY, Some("{"), "the JWKS is not JSON"),
        (POLICY, Some("{\"keys\":[]}"), "the JWKS has 0 keys: it needs 1 to 64"),
        (POLICY, Some("{\"keys\":[{\"kty\":\"oct\",\"k\":\"YQ\"}]}"), "at least 32 bytes"),
        (&public, Some(&jwks(SECRET)), "no key of"),
    ] {
        let message = message(policy, jwks);
        assert!(message.contains(expected), "{message}");
        assert!(message.contains("shop.yaml:2:14"), "{message}");
    }
}

#[test]
fn a_text_to_compare_with_reads_tokens_as_the_policy_in_force() {
    let directory = tempfile::tempdir().unwrap();
    let current = written(directory.path(), POLICY, &jwks(SECRET));
    let draft =
        parse_relative_to(&current.policy, "draft", &POLICY.replace("6_000", "7_000")).unwrap();
    let pro = token(SECRET, &claims("pro", LATER));
    assert_eq!(charges(&draft.policy, &pro)[0], "core caller=user:ann 7000");
    let plain =
        parse("plain", "limits: { a: { quota: 1, window: 1s } }\nrules: [{ limits: a }]").unwrap();
    let refused = parse_relative_to(&plain.policy, "draft", POLICY).unwrap_err().to_string();
    assert!(refused.contains("the policy in force has no tokens"), "{refused}");
}

#[test]
fn claims_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    let loaded = written(directory.path(), POLICY, &jwks(SECRET));
    let message = explain(&loaded).to_string();
    assert!(message.contains("the claim sub of the token in authorization, verified"), "{message}");
    assert!(
        message.contains("the claim realm > tenant of the token in authorization"),
        "{message}"
    );
    let accepted = "tokens\n  accepted  signed with HS256 by a key of keys/jwks.json, by \
                    https://id.example.com, for api, with a tolerance of 30 s\n";
    assert!(message.contains(accepted), "{message}");
    let policy =
        POLICY.replace("keys: keys/jwks.json, algorithms: HS256", "unverified: true, cookie: id");
    let policy = policy.replace("{ claim: /https", "{ trusted: true, claim: /https");
    let message = explain(&written(directory.path(), &policy, "")).to_string();
    assert!(
        message.contains("the claim sub of the token in the cookie id, not verified"),
        "{message}"
    );
}
