//! Claims of tokens at the proxy and at `/v1/authorize`, with keys that are replaced.

use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::support::client::Client;
use crate::support::listeners::recipe;
use crate::support::node::{Folder, Node, PATIENCE};
use crate::support::world::{Answer, Proxy};

/// A key of the identity provider.
struct Key(Ed25519KeyPair);

impl Key {
    fn new() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn jwks(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key());
        format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"1","x":"{x}"}}]}}"#)
    }

    /// Returns a token that is valid until 2096.
    fn token(&self, user: &str, plan: &str) -> String {
        let claims = format!(
            r#"{{"iss":"https://id.example.com","aud":"api","exp":4000000000,"sub":"{user}","plan":"{plan}"}}"#
        );
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"EdDSA","kid":"1"}"#);
        let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

/// Returns a directory with the policy of the recipe, with small quotas, and with the key.
fn folder(key: &Key) -> Folder {
    let policy = recipe("Users and plans from tokens (JWT)");
    let values = "{ free: 60, pro: 6_000 }, default: 30";
    assert!(policy.contains(values), "{policy}");
    let folder = Folder::with(&policy.replace(values, "{ free: 2, pro: 3 }, default: 1"));
    folder.write("jwks.json", &key.jwks());
    folder
}

fn quota(answer: &Answer) -> String {
    let policy = answer.field("ratelimit-policy");
    policy.split_once("q=").unwrap().1.split(';').next().unwrap().to_owned()
}

/// Sends requests with genuine and forged tokens.
fn check(key: &Key, send: &dyn Fn(&str) -> Answer) {
    for (user, plan, allowed) in [("ann", "free", 2), ("bob", "pro", 3), ("eve", "gold", 1)] {
        let token = key.token(user, plan);
        for number in 1..=allowed + 1 {
            let answer = send(&token);
            assert_eq!(answer.status == 429, number > allowed, "{user}: {answer:?}");
            assert_eq!(quota(&answer), allowed.to_string(), "{user}: {answer:?}");
        }
    }
    // Forged tokens have no claims: all are counted by the address, with the default.
    let forged = Key::new();
    assert_ne!(send(&forged.token("ann", "pro")).status, 429);
    let refused = send(&forged.token("bob", "pro"));
    assert_eq!((refused.status, quota(&refused).as_str()), (429, "1"), "{refused:?}");
}

#[test]
fn claims_select_the_user_and_the_plan_at_the_proxy_and_at_the_listener() {
    let key = Key::new();
    let folder = folder(&key);
    let end = "connection: close\r\n\r\n";
    let proxy = Proxy::start(&folder.policy());
    check(&key, &|token| {
        let field = format!("authorization: Bearer {token}\r\n");
        let request = format!("GET / HTTP/1.1\r\nhost: test\r\n{field}{end}");
        Answer::parse(&proxy.send(request.as_bytes()))
    });
    let node = Node::open(&folder.policy());
    let send = |token: &str| {
        let mut client = Client::connect(node.listener("http")).unwrap();
        let fields = format!(
            "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-for: 192.0.2.7\r\n\
             authorization: Bearer {token}\r\n"
        );
        let request = format!("GET /v1/authorize HTTP/1.1\r\nhost: test\r\n{fields}{end}");
        client.send(request).unwrap();
        Answer::parse(&client.rest())
    };
    check(&key, &send);

    // The provider replaces its key: the node reads the file again, and the old key is refused.
    let next = Key::new();
    folder.write("jwks.json", &next.jwks());
    let deadline = Instant::now() + PATIENCE;
    while quota(&send(&next.token("joe", "pro"))) != "3" {
        assert!(Instant::now() < deadline, "the new key is not used");
        sleep(Duration::from_millis(50));
    }
    assert_eq!(quota(&send(&key.token("joe", "pro"))), "1");
}
