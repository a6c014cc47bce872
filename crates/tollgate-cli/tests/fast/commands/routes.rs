//! Routes of the proxy: which upstream serves the requests of which rule.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use crate::support::node::Folder;
use crate::support::world::{Proxy, tollgate};

/// Starts a service that answers every request with `name`.
fn named_service(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            thread::spawn(move || {
                let (mut client, mut read) = (client.unwrap(), Vec::new());
                let mut bytes = [0; 4_096];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    read.extend(&bytes[..count]);
                    if read.ends_with(b"\r\n\r\n") {
                        read.clear();
                        let length = name.len();
                        let answer =
                            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{name}");
                        client.write_all(answer.as_bytes()).unwrap();
                    }
                }
            });
        }
    });
    address
}

const POLICY: &str = "
limits: { all: { quota: 1_000, window: 1h } }
rules:
  - { name: beta, match: { header: { x-beta: \"1\" } }, limits: [] }
  - { name: exports, match: { when: \"request.params.format == 'csv'\" }, limits: all, mode: shadow }
  - { name: others, limits: all }
";

#[test]
fn the_requests_of_a_rule_are_served_by_its_upstream() {
    let folder = Folder::with(POLICY);
    let [others, beta, exports, docs] =
        ["others", "beta", "exports", "docs"].map(|name| format!("http://{}", named_service(name)));
    let flags = [
        "--route",
        &format!("rule:beta={beta}"),
        "--route",
        &format!("rule:exports={exports}"),
        "--route",
        &format!("/docs={docs}"),
    ];
    let proxy = Proxy::start_with("127.0.0.1:0", &others, &folder.policy(), &flags);
    let served = |path: &str, fields: &[&str]| proxy.get(path, fields).body;
    for (path, fields, expected) in [
        ("/", &[][..], "others"),
        ("/", &["x-beta: 1"], "beta"),
        ("/?format=csv", &[], "exports"),
        ("/?format=csv", &["x-beta: 1"], "beta"),
        ("/docs/a", &[], "docs"),
        // A rule precedes a prefix.
        ("/docs/a?format=csv", &[], "exports"),
    ] {
        assert_eq!(served(path, fields), expected, "{path} {fields:?}");
    }
    // A rule that the policy has no more leaves its requests to the other routes.
    folder.write("policy.yaml", &POLICY.replace("name: exports", "name: downloads"));
    proxy.hang_up();
    let line = proxy.wait_for_log("rule:exports");
    assert!(line.contains("the policy has no rule"), "{line}");
    // The warning is logged before requests use the new policy.
    proxy.wait_for_log("the policy was reloaded");
    assert_eq!(served("/docs/a?format=csv", &[]), "docs");
    assert_eq!(served("/", &["x-beta: 1"]), "beta");
}

#[test]
fn a_route_of_an_unknown_rule_is_an_error_with_what_is_right() {
    let folder = Folder::with(POLICY);
    let policy = folder.policy().display().to_string();
    for (rule, words) in [
        ("export", "the policy has no rule \"export\"; did you mean \"exports\"?"),
        ("zzz", "its rules are beta, exports, others"),
    ] {
        let route = format!("rule:{rule}=http://127.0.0.1:9");
        let flags = ["proxy", "--upstream", "http://127.0.0.1:9", "--route", &route];
        let output = tollgate(&[&flags[..], &["--policy", &policy]].concat());
        assert!(!output.status.success());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(words), "{errors}");
    }
}
