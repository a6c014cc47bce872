//! The start of a process, and errors that prevent it.

use crate::support::client::{fetch, send_line};
use crate::support::grpc::{ASK, call};
use crate::support::node::{Folder, Node, POLICY, command, refused};

#[test]
fn every_listener_answers_over_one_store() {
    let node = Node::open(&Folder::new("").policy());
    let first = fetch(node.listener("http"), "POST", "/v1/check", None);
    assert_eq!(first.status, 200);
    assert!(first.body.contains("\"used\":1,"), "{}", first.body);
    let (status, message) = call(node.listener("grpc"), ASK, None);
    assert_eq!(status, "0");
    // The overall status is the first field of the message: serving.
    assert_eq!(message[5..7], [0x08, 1], "{message:?}");
    assert_eq!(
        send_line(node.listener("resp"), &["PING", "CL.THROTTLE k 1 1 60"]),
        ["+PONG", "*5"]
    );
    let second = fetch(node.listener("admin"), "POST", "/v1/check", None);
    assert!(second.body.contains("\"used\":2,"), "{}", second.body);
    assert_eq!(fetch(node.listener("admin"), "GET", "/readyz", None).body, "ok\n");
}

#[test]
fn the_listener_of_administration_reports_how_the_store_stands() {
    // Nothing listens there: the shard is known, but not connected.
    let shards = "{ one: { primary: \"redis://127.0.0.1:1\" } }";
    let folder = Folder::new(&format!("store: {{ redis: {{ shards: {shards} }} }}\n"));
    let flags = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut start = command(&folder.policy(), &flags);
    start.env("TOLLGATE_SECRET", "a-secret-of-the-tests");
    let node = Node::start(start);
    let status = fetch(node.listener("admin"), "GET", "/v1/status", None);
    let response: serde_json::Value = serde_json::from_str(&status.body).unwrap();
    assert_eq!(response["store"], "redis", "{response}");
    assert_eq!(response["shards"][0]["name"], "one");
    assert!(
        response["shards"][0]["primary"].is_null() && response["counts"]["fallback_decisions"] == 0,
        "{response}"
    );
    assert_eq!(fetch(node.listener("admin"), "POST", "/v1/status", None).status, 405);
    assert_eq!(fetch(node.listener("http"), "GET", "/v1/status", None).status, 403);
}

#[test]
fn the_file_says_where_and_a_flag_goes_first() {
    let folder = Folder::new("");
    let socket = folder.path("http.sock").display().to_string();
    let serve = format!(
        "serve: {{ http: {{ listen: \"unix:{socket}\" }}, resp: {{ listen: \"192.0.2.1:1\" }} }}\n"
    );
    let folder = Folder::new(&serve);
    let node = Node::start(command(&folder.policy(), &["--resp", "127.0.0.1:0"]));
    assert_eq!(node.listener("http"), format!("unix:{socket}"));
    assert_eq!(send_line(node.listener("resp"), &["PING"]), ["+PONG"]);
}

#[test]
fn what_cannot_work_is_explained() {
    let listener = "no listener is configured: add one, such as --http 127.0.0.1:8181, or `serve: \
                { http: { listen: \"127.0.0.1:8181\" } }` in the policy file\n";
    let folder = Folder::new("");
    for (flags, words) in [
        (&[][..], listener),
        (&["--admin", "127.0.0.1:0"], listener),
        (
            &["--resp", "0.0.0.0:0"],
            "the resp listener: 0.0.0.0:0 is reachable from other machines and requires no token: \
             configure tokens, listen on loopback, or pass --insecure\n",
        ),
        (
            &["--http", "systemd:http", "--insecure"],
            "the http listener: no socket named \"http\": the service manager passed none\n",
        ),
    ] {
        assert_eq!(refused(&folder.policy(), flags), words, "{flags:?}");
    }
    let response = refused(&folder.policy(), &["--grpc", "localhost:1"]);
    let words = "\"localhost:1\" is not a listen address: use 127.0.0.1:8080, unix:/path or \
        systemd:NAME";
    assert!(response.contains(words), "{response}");
}

#[test]
fn tokens_that_cannot_be_used_keep_it_from_starting() {
    let folder = Folder::new("");
    let tokens = folder.path("tokens.txt").display().to_string();
    let listener = format!("{{ listen: \"127.0.0.1:0\", tokens: {{ file: {tokens} }} }}");
    folder.write("policy.yaml", &format!("{POLICY}serve: {{ http: {listener} }}\n"));
    let words = "No such file or directory (os error 2)";
    let response = refused(&folder.policy(), &[]);
    assert_eq!(response, format!("serve.http.tokens: cannot read {tokens}: {words}\n"));
    for (text, words) in [
        ("", "serve.http.tokens: no token found: write one token per line"),
        ("too-short\n", "serve.http.tokens: a token has 9 bytes: at least 16 are required"),
    ] {
        folder.write("tokens.txt", text);
        let response = refused(&folder.policy(), &[]);
        assert!(response.contains(words) && !response.contains("too-short"), "{response}");
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = Folder::new("");
    let node = Node::open(&folder.policy());
    let taken = node.listener("http").to_owned();
    let response = refused(&folder.policy(), &["--http", &taken]);
    assert_eq!(
        response,
        format!(
            "the http listener: cannot listen on {taken}: Address already in use (os error 98)\n"
        )
    );
}

#[test]
fn buckets_of_the_redis_protocol_do_what_the_file_says_without_the_store() {
    // Nothing listens there.
    let store = "store: { redis: { shards: { one: { primary: 'redis://127.0.0.1:1' } } } }";
    let throttled = |on_failure: &str| {
        let answers = format!("answers: {{ on_failure: {on_failure} }}\n{store}\n");
        let node = Node::open(&Folder::new(&answers).policy());
        send_line(node.listener("resp"), &["CL.THROTTLE key 1 1 60"]).remove(0)
    };
    assert!(throttled("deny").starts_with('-'));
    assert_eq!(throttled("allow"), "*5");
}
