//! Ways to write one request that services treat alike: `tollgate proxy` with `policies/sign-in.yaml`
//! and `policies/github.yaml`.

use std::time::Instant;

use crate::support::world::{Answer, Proxy, policy};

const GUESSES: usize = 200;

/// Returns how many of the guessed passwords reach the service at `path`.
fn passed(method: &str, path: &str) -> usize {
    let proxy = Proxy::start(&policy("sign-in.yaml"));
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-account: alice\r\n\
         content-length: 0\r\n\r\n"
    );
    let guess = |_| Answer::parse(&proxy.send(request.as_bytes())).status;
    (0..GUESSES).map(guess).filter(|status| *status == 200).count()
}

#[test]
fn no_spelling_of_login_lets_more_than_five_of_two_hundred_guesses_pass() {
    assert_eq!(passed("POST", "/login"), 5);
    let many = format!("/{}{}login", "a/".repeat(257), "../".repeat(257));
    for path in ["/LOGIN", "/lOgin", "/login;x", "/Login;x=1;y", "//login", "/%6cogin", "/login/"] {
        assert_eq!(passed("POST", path), 5, "{path}");
    }
    for path in [
        "/x%2f..%2flogin",
        "/x/..%2Flogin",
        "/x\\..\\login",
        "/x%5c..%5clogin",
        "/login%00",
        "/%2e/login",
        "/x/%2e%2e/login",
        "/x/..;/login",
        &many,
    ] {
        assert_eq!(passed("POST", path), 0, "{path}");
    }
    assert_eq!(passed("post", "/login"), 5);
    assert_eq!(passed("PoSt", "/LOGIN;x"), 5);
}

#[test]
fn an_ambiguous_path_is_a_400_that_is_counted_and_logged() {
    let proxy = Proxy::start(&policy("github.yaml"));
    let refused = proxy.get("/x%2f..%2fsearch", &[]);
    assert_eq!(refused.status, 400);
    assert_eq!(refused.field("content-type"), "application/problem+json");
    assert!(refused.body.contains("encoded slash"), "{}", refused.body);
    assert!(proxy.wait_for_log("can be read in more than one way").contains("encoded_slash"));
    // The request was charged nothing, and the connection can still be used.
    assert_eq!(proxy.get("/", &[]).field("x-ratelimit-used"), "1");
}

#[test]
fn one_credential_is_one_counter_whatever_stands_after_its_scheme() {
    let began = Instant::now();
    let proxy = Proxy::start(&policy("github.yaml"));
    let mut used = 0;
    for count in 1..=100 {
        for (scheme, space) in
            [("Bearer", "\t"), ("bEARER", " "), ("token", "\t "), ("TOKEN", " \t")]
        {
            let field = format!("authorization: {scheme}{}SECRET", space.repeat(count));
            let answer = proxy.get("/", &[&field]);
            used += 1;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.field("x-ratelimit-used"), used.to_string(), "{:?}", began.elapsed());
        }
    }
    for value in
        ["Bearer\tx SECRET", "Bearer SECRET x", "Basic SECRET x", "Bearer a, Bearer SECRET"]
    {
        assert_eq!(proxy.get("/", &[&format!("authorization: {value}")]).status, 400, "{value}");
    }
}

#[test]
fn a_credential_that_occurs_twice_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    let text = "subjects:\n  \
                  key: { credential: x-api-key }\n  \
                  session: { cookie: session }\n\
                limits: { few: { quota: 3, window: 1h, per: [key, session] } }\n\
                rules: [ { name: all, match: { has: [key, session] }, limits: few } ]\n";
    std::fs::write(&path, text).unwrap();
    let proxy = Proxy::start(&path);
    let (key, session) = ("x-api-key: k", "cookie: session=REAL");
    for twice in [
        [key, "x-api-key: other", session],
        [key, "x-api-key: k", session],
        [key, session, "cookie: session=decoy"],
        [key, "accept: */*", "cookie: session=decoy; session=REAL"],
        [key, "accept: */*", "cookie: session=\"\\122EAL\""],
        [key, "accept: */*", "cookie: session=REAL a=1"],
    ] {
        assert_eq!(proxy.get("/", &twice).status, 400, "{twice:?}");
    }
    let ways = ["session=REAL", "session= REAL", "session=\"REAL\"", "a=b; session =REAL"];
    let statuses = ways.map(|cookie| proxy.get("/", &[key, &format!("cookie: {cookie}")]).status);
    assert_eq!(statuses, [200, 200, 200, 429]);
}

/// The status of a request to `policies/llm-tokens.yaml` with this body.
fn generate(proxy: &Proxy, fields: &[&str], body: &[u8]) -> u16 {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\
         authorization: Bearer k\r\ncontent-length: {}\r\n{fields}\r\n",
        body.len()
    );
    Answer::parse(&proxy.send(&[head.as_bytes(), body].concat())).status
}

#[test]
fn a_body_that_hides_the_model_is_refused() {
    let proxy = Proxy::start(&policy("llm-tokens.yaml"));
    let json = "content-type: application/json";
    let model: &[u8] = br#"{"model":"small","max_tokens":0}"#;
    let long = [b"{\"model\":\"small\"".as_slice(), &[b' '; 257 * 1024], b"}"].concat();
    let name = format!("{{\"model\":\"{}\"}}", "x".repeat(70_000));
    for (fields, body, status) in [
        (&[][..], model, 415),
        (&["content-type: text/plain"][..], model, 415),
        (&[json, "content-encoding: gzip"][..], model, 415),
        (&[json, "expect: 100-continue"][..], model, 417),
        (&[json][..], long.as_slice(), 413),
        (&[json][..], &b"\xef\xbb\xbf{\"model\":\"small\"}"[..], 400),
        (&[json][..], &b"{\"a\":NaN,\"model\":\"small\"}"[..], 400),
        (&[json][..], &b"{\0\"\0m\0o\0d\0e\0l\0"[..], 400),
        (&[json][..], name.as_bytes(), 400),
    ] {
        let response = String::from_utf8_lossy(&body[..body.len().min(40)]);
        assert_eq!(generate(&proxy, fields, body), status, "{fields:?} {response}");
    }
}
