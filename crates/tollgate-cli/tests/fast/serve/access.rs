//! Which clients may send which requests at which listener.

use crate::support::certificates::Authority;
use crate::support::client::{Client, fetch, send_line};
use crate::support::grpc::{ASK, HEALTH, REFLECTION, call};
use crate::support::node::{Folder, Node};

const RIGHT: &str = "the-right-token-of-the-node";
const WRONG: &str = "a-wrong-token-of-the-node";
const SHOWN: [Option<&str>; 3] = [None, Some(WRONG), Some(RIGHT)];

/// Every path that requires a token.
const GUARDED: [(&str, &str); 7] = [
    ("POST", "/v1/check"),
    ("POST", "/v1/check/batch"),
    ("POST", "/v1/peek"),
    ("POST", "/v1/refund"),
    ("POST", "/v1/release"),
    ("GET", "/v1/standing"),
    ("POST", "/json"),
];
const OPEN: [(&str, &str); 3] = [("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/openapi.json")];

fn with_tokens() -> (Folder, Node) {
    let listener = "{ listen: \"127.0.0.1:0\", tokens: { file: tokens.txt } }";
    let folder = Folder::new("");
    let path = folder.path("tokens.txt").display().to_string();
    let listener = listener.replace("tokens.txt", &path);
    folder.write("tokens.txt", RIGHT);
    let text = crate::support::node::POLICY.to_owned()
        + &format!(
            "serve: {{ http: {listener}, grpc: {listener}, resp: {listener}, admin: {listener} }}\n"
        );
    folder.write("policy.yaml", &text);
    let node = Node::start(crate::support::node::command(&folder.policy(), &[]));
    (folder, node)
}

#[test]
fn a_listener_with_tokens_answers_who_shows_one() {
    let (_folder, node) = with_tokens();
    for listener in ["http", "admin"] {
        let address = node.listener(listener);
        for shown in SHOWN {
            for (method, path) in GUARDED {
                let is_kept_out = fetch(address, method, path, shown).status == 401;
                assert_eq!(is_kept_out, shown != Some(RIGHT), "{listener} {path} {shown:?}");
            }
            for (method, path) in OPEN {
                assert_eq!(fetch(address, method, path, shown).status, 200, "{path} {shown:?}");
            }
        }
    }
    // Paths for administrators. A subject to reset has to be named.
    for (shown, [status, forget]) in SHOWN.into_iter().zip([[401, 401], [401, 401], [200, 400]]) {
        assert_eq!(fetch(node.listener("admin"), "GET", "/v1/status", shown).status, status);
        assert_eq!(fetch(node.listener("admin"), "DELETE", "/v1/standing", shown).status, forget);
        let elsewhere = if shown == Some(RIGHT) { 403 } else { 401 };
        for (method, path) in [("GET", "/v1/status"), ("DELETE", "/v1/standing")] {
            assert_eq!(
                fetch(node.listener("http"), method, path, shown).status,
                elsewhere,
                "{path}"
            );
        }
        // Proxies send their token in a field of its own.
        assert_eq!(fetch(node.listener("http"), "GET", "/v1/authorize", shown).status, 403);
    }
    for (shown, status) in SHOWN.into_iter().zip(["16", "16", "0"]) {
        assert_eq!(call(node.listener("grpc"), ASK, shown).0, status);
        // An empty reflection request is answered with an error, after the client is authenticated.
        let asked_nothing = if status == "0" { "3" } else { status };
        assert_eq!(call(node.listener("grpc"), REFLECTION, shown).0, asked_nothing);
        assert_eq!(call(node.listener("grpc"), HEALTH, shown).0, "0");
    }
    let (wrong, right) = (format!("AUTH {WRONG}"), format!("AUTH {RIGHT}"));
    let resp = node.listener("resp");
    let no_auth = "-NOAUTH Authentication required.";
    let wrong_pass = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(send_line(resp, &["CL.THROTTLE k 1 1 60"]), [no_auth]);
    assert_eq!(send_line(resp, &[&wrong, "CL.THROTTLE k 1 1 60"]), [wrong_pass, no_auth]);
    assert_eq!(send_line(resp, &[&right, "CL.THROTTLE k 1 1 60"]), ["+OK", "*5"]);
}

#[test]
fn wrong_tokens_are_counted_at_every_listener() {
    let (_folder, node) = with_tokens();
    for listener in ["http", "admin"] {
        assert_eq!(fetch(node.listener(listener), "POST", "/v1/check", Some(WRONG)).status, 401);
        assert_eq!(fetch(node.listener(listener), "POST", "/v1/check", None).status, 401);
    }
    assert_eq!(call(node.listener("grpc"), ASK, Some(WRONG)).0, "16");
    assert_eq!(call(node.listener("grpc"), ASK, None).0, "16");
    send_line(node.listener("resp"), &[&format!("AUTH {WRONG}"), "PING"]);
    let page = fetch(node.listener("admin"), "GET", "/metrics", Some(RIGHT)).body;
    for listener in ["http", "grpc", "resp", "admin"] {
        let line = format!("tollgate_listener_wrong_tokens_total{{listener=\"{listener}\"}} 1\n");
        assert!(page.contains(&line), "{line}{page}");
    }
}

/// A page that resolves its own name to this machine sends that name as the host.
#[test]
fn an_http_listener_without_tokens_refuses_foreign_hosts() {
    let folder = Folder::new("");
    let hosts = "serve: { http: { listen: \"127.0.0.1:0\", hosts: limits.example } }\n";
    folder.write("policy.yaml", &(crate::support::node::POLICY.to_owned() + hosts));
    let node = Node::start(crate::support::node::command(&folder.policy(), &[]));
    let body = r#"{"limits":[{"name":"all"}]}"#;
    let status = |path: &str, host: &str| {
        let mut client = Client::connect(node.listener("http")).unwrap();
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n");
        client.send(format!("{head}content-length: {length}\r\n\r\n{body}")).unwrap();
        let answer = client.answer().unwrap();
        if answer.status == 421 {
            assert!(answer.body.contains("serve: { http: { hosts: "), "{}", answer.body);
        }
        answer.status
    };
    for path in ["/v1/check", "/v1/peek"] {
        for host in ["127.0.0.1", "127.0.0.1:8181", "localhost:80", "[::1]", "Limits.Example"] {
            assert_eq!(status(path, host), 200, "{path} {host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "limits.example.evil"] {
            assert_eq!(status(path, host), 421, "{path} {host}");
        }
    }
}

/// The bug: at a listener that admits callers by their certificates, a caller received the response
/// to the request of another caller with the same key, and was not charged.
#[test]
fn callers_with_certificates_of_their_own_shared_their_idempotency_keys() {
    let authority = Authority::new();
    authority.issue("server", "localhost");
    let tls = format!(
        "{{ certificate: {}, key: {}, client_ca: {} }}",
        authority.flag("server.pem"),
        authority.flag("server.key"),
        authority.flag("ca.pem")
    );
    let folder =
        Folder::new(&format!("serve: {{ http: {{ listen: \"127.0.0.1:0\", tls: {tls} }} }}\n"));
    let node = Node::start(crate::support::node::command(&folder.policy(), &[]));
    let address = node.listener("http").parse().unwrap();
    let body = r#"{"limits":[{"name":"all"}]}"#;
    let request = format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         idempotency-key: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (one, other) = (authority.client(Some("one")), authority.client(Some("other")));
    for (client, used, is_repeated) in
        [(&one, 1, false), (&other, 2, false), (&one, 1, true), (&other, 2, true)]
    {
        let (answer, _) = client.send(address, request.as_bytes());
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains(&format!("\"used\":{used},")), "{answer}");
        assert_eq!(answer.contains("idempotency-replayed: true"), is_repeated, "{answer}");
    }
}

#[test]
fn a_listener_on_loopback_asks_for_none() {
    let node = Node::open(&Folder::new("").policy());
    for shown in SHOWN {
        for listener in ["http", "admin"] {
            for (method, path) in GUARDED.into_iter().chain(OPEN) {
                assert_ne!(
                    fetch(node.listener(listener), method, path, shown).status,
                    401,
                    "{path}"
                );
            }
        }
        assert_eq!(call(node.listener("grpc"), ASK, shown).0, "0");
    }
    assert_eq!(send_line(node.listener("resp"), &["CL.THROTTLE k 1 1 60"]), ["*5"]);
}
