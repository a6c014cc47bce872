//! Files that are reloaded on SIGHUP.

use std::process::{Command, Stdio};

use crate::support::client::{fetch, send_line};
use crate::support::node::{Folder, Node, POLICY, command};

const FIRST: &str = "the-first-token-of-all";
const SECOND: &str = "the-second-token-of-all";

#[test]
fn tokens_are_replaced_on_sighup() {
    let folder = Folder::new("");
    folder.write("tokens.txt", FIRST);
    let listener = format!(
        "{{ listen: \"127.0.0.1:0\", tokens: {{ file: {} }} }}",
        folder.path("tokens.txt").display()
    );
    folder.write(
        "policy.yaml",
        &format!("{POLICY}serve: {{ http: {listener}, resp: {listener} }}\n"),
    );
    let node = Node::start(command(&folder.policy(), &[]));
    let admitted = |token: &str| {
        let status = fetch(node.listener("http"), "POST", "/v1/check", Some(token)).status;
        let reply = &send_line(node.listener("resp"), &[&format!("AUTH {token}")])[0];
        assert_eq!(status == 200, reply == "+OK", "{status} {reply}");
        status == 200
    };
    assert!(admitted(FIRST) && !admitted(SECOND));
    folder.write("tokens.txt", SECOND);
    read_anew(&node, "tokens reloaded");
    assert!(admitted(SECOND) && !admitted(FIRST));
    folder.write("tokens.txt", "short");
    read_anew(&node, "tokens not reloaded");
    assert!(admitted(SECOND) && !admitted(FIRST));
}

#[test]
fn certificates_are_replaced_on_sighup() {
    let folder = Folder::new("");
    let first = certificate(&folder);
    let (certificate_file, key) = (folder.path("cert.pem"), folder.path("key.pem"));
    let tls = format!("{{ certificate: {}, key: {} }}", certificate_file.display(), key.display());
    let listener = format!("{{ listen: \"127.0.0.1:0\", tls: {tls} }}");
    folder.write("policy.yaml", &format!("{POLICY}serve: {{ http: {listener} }}\n"));
    let node = Node::start(command(&folder.policy(), &[]));
    assert!(!first.is_empty());
    assert_eq!(shown(node.listener("http")), first);
    let second = certificate(&folder);
    node.signal("-HUP");
    node.wait_for_log("certificates reloaded");
    assert_eq!(shown(node.listener("http")), second);
    folder.write("cert.pem", "nothing");
    node.signal("-HUP");
    node.wait_for_log("certificates not reloaded");
    assert_eq!(shown(node.listener("http")), second);
}

/// Writes a self-signed certificate, and returns its body.
fn certificate(folder: &Folder) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    folder.write("cert.pem", &made.cert.pem());
    folder.write("key.pem", &made.signing_key.serialize_pem());
    body(&made.cert.pem())
}

/// Returns the certificate of the listener at `address`.
fn shown(address: &str) -> String {
    let response = Command::new("openssl")
        .args(["s_client", "-connect", address])
        .stdin(Stdio::null())
        .output()
        .expect("openssl is missing: ./test installs it");
    body(&String::from_utf8(response.stdout).unwrap())
}

/// Returns the text between the line that begins the first certificate and the line that ends it.
fn body(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines = lines.skip_while(|line| *line != "-----BEGIN CERTIFICATE-----").skip(1);
    lines.take_while(|line| *line != "-----END CERTIFICATE-----").collect()
}

/// Waits until both listeners have loaded the file.
fn read_anew(node: &Node, words: &str) {
    node.signal("-HUP");
    node.wait_for_log(words);
    node.wait_for_log(words);
}
