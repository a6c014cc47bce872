//! Responses to refused requests that the policy sets, at the proxy, at `/v1/authorize` and in Envoy's
//! protocol.

use crate::support::client::Client;
use crate::support::node::{Folder, Node};
use crate::support::world::{Answer, Proxy};

const POLICY: &str = r#"
trusted_proxies: 127.0.0.1
subjects: { address: { client_address: {} } }
limits:
  core:  { quota: 1, window: 1h, per: address }
  login: { quota: 1, window: 1h, per: address, refuse: { status: 403, body: { text: "Too many attempts; wait {{retry_after}} s." } } }
rules:
  - { name: sign-in, match: { path: /login }, limits: login }
  - name: pages
    match: { path: /pages/** }
    limits: core
    refuse: { headers: { cache-control: no-store }, body: { html: "<h1>{{limit}} of {{rule}}</h1>" } }
  - { name: rest, limits: core }
answers:
  refuse:
    documentation: https://example.com/limits
    body: { json: '{"error": "{{limit}}", "quota": {{quota}}, "docs": "{{documentation}}"}' }
"#;

/// Returns the second response to a request, at the proxy and at `/v1/authorize`.
fn refused(target: &str, accept: &str) -> [Answer; 2] {
    let folder = Folder::with(POLICY);
    let (proxy, node) = (Proxy::start(&folder.policy()), Node::open(&folder.policy()));
    let fields = format!("host: test\r\naccept: {accept}\r\nconnection: close\r\n");
    let through = format!("GET {target} HTTP/1.1\r\n{fields}\r\n");
    let request = format!(
        "GET /v1/authorize HTTP/1.1\r\nx-forwarded-method: GET\r\nx-forwarded-uri: {target}\r\n\
         x-forwarded-for: 192.0.2.1\r\n{fields}\r\n"
    );
    let send_request = || {
        let mut listener = Client::connect(node.listener("http")).unwrap();
        listener.send(&request).unwrap();
        Answer::parse(&listener.rest())
    };
    proxy.send(through.as_bytes());
    send_request();
    [Answer::parse(&proxy.send(through.as_bytes())), send_request()]
}

#[test]
fn clients_receive_the_refusal_of_the_limit_of_the_rule_or_of_the_policy() {
    for answer in refused("/login", "*/*") {
        assert_eq!((answer.status, &*answer.body), (403, "Too many attempts; wait 3600 s."));
    }
    for answer in refused("/pages/a", "application/json") {
        assert_eq!((answer.status, &*answer.body), (429, "<h1>core of pages</h1>"));
        assert_eq!(answer.field("cache-control"), "no-store");
        assert_eq!(answer.field("link"), "");
    }
    for answer in refused("/", "*/*") {
        let body = r#"{"error": "core", "quota": 1, "docs": "https://example.com/limits"}"#;
        assert_eq!((answer.status, &*answer.body), (429, body));
        assert_eq!(answer.field("link"), "<https://example.com/limits>; rel=\"help\"");
        assert_eq!(answer.field("content-type"), "application/json");
    }
}
