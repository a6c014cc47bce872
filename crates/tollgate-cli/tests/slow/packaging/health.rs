//! `tollgate health ADDR`: readiness as an exit code.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::packaging::files::texts;
use crate::packaging::node::Node;
use crate::support::world::{policy, tollgate};

fn serve(flags: &[&str]) -> Node {
    let flags =
        serde_json::json!([&["serve", "--policy", "/etc/tollgate/policy.yaml"], flags].concat());
    Node::start(&texts(&flags), &policy("github.yaml"), &[])
}

/// Returns the error for a listener that does not respond correctly.
fn complaint(address: &str) -> String {
    let output = tollgate(&["health", address]);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_node_that_serves_is_healthy_at_either_of_its_http_listeners() {
    let node = serve(&["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    for endpoint in ["http", "admin"] {
        let output = tollgate(&["health", node.listener(endpoint)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let address = node.listener("admin").to_owned();
    drop(node);
    assert!(complaint(&address).starts_with(&format!("cannot query {address}: ")));
}

#[test]
fn a_node_is_asked_over_a_unix_domain_socket() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("unix:{}", folder.path().join("admin").display());
    let _node = serve(&["--http", "127.0.0.1:0", "--admin", &address]);
    assert!(tollgate(&["health", &address]).status.success());
}

#[test]
fn another_listener_is_distinguished_from_a_healthy_one() {
    let node = serve(&["--resp", "127.0.0.1:0"]);
    let response = complaint(node.listener("resp"));
    assert!(
        response.contains("did not respond with HTTP") || response.contains("cannot query"),
        "{response}"
    );
    assert!(complaint("systemd:http").contains("the address of a systemd socket is unknown here"));
}

#[test]
fn a_node_that_takes_no_requests_is_not_healthy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let requested = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let length = client.read(&mut request).unwrap();
        client.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    assert_eq!(
        complaint(&address),
        format!("{address} accepts no requests: it responded with 503\n")
    );
    assert!(requested.join().unwrap().starts_with("GET /readyz HTTP/1.1\r\n"));
}
