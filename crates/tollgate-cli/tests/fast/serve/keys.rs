//! `tollgate keys`: a subject at a running node, and which clients may query it.

use std::process::{Command, Output};

use crate::support::client::Client;
use crate::support::node::{Folder, Node};

const TOKEN: &str = "an administrator's own token";

/// A node with a token for its admin listener, and the file with the token.
fn guarded() -> (Folder, Node) {
    let folder = Folder::new("");
    folder.write("tokens", &format!("# who runs it\n{TOKEN}\n"));
    folder.write("wrong", "a token of another listener\n");
    let serve = format!(
        "{}serve: {{ admin: {{ listen: \"127.0.0.1:0\", tokens: {{ file: \"{}\" }} }} }}\n",
        crate::support::node::POLICY,
        folder.path("tokens").display(),
    );
    folder.write("policy.yaml", &serve);
    let node =
        Node::start(crate::support::node::command(&folder.policy(), &["--http", "127.0.0.1:0"]));
    (folder, node)
}

fn keys(folder: &Folder, node: &Node, token: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let (action, rest) = arguments.split_first().unwrap();
    let at = format!("http://{}", node.listener("admin"));
    command.args(["keys", action, "--admin", &at, "--token-file"]).arg(folder.path(token));
    command.args(rest).output().unwrap()
}

fn response(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success() && output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn who_shows_a_token_is_reported_and_nobody_else() {
    let (folder, node) = guarded();
    let set = [
        "override",
        "--limit",
        "many",
        "address=192.0.2.1",
        "--quota",
        "7",
        "--for",
        "1h",
        "--reason",
        "a test",
    ];
    assert!(response(&keys(&folder, &node, "tokens", &set)).contains("on many: quota 7, ends in"));
    let show = ["show", "--limit", "many", "--limit", "all", "--json", "address=192.0.2.1"];
    let shown: serde_json::Value =
        serde_json::from_str(&response(&keys(&folder, &node, "tokens", &show))).unwrap();
    assert_eq!(shown["statuses"][0]["limit"], 7);
    assert_eq!(shown["overrides"][0]["reason"], "a test");
    let refused = complaint(&keys(&folder, &node, "wrong", &show));
    assert!(refused.contains("not valid for this listener"), "{refused}");
    let missing = complaint(&keys(&folder, &node, "missing", &show));
    assert!(missing.contains("missing"), "{missing}");
}

#[test]
fn subjects_are_listed_by_what_their_names_begin_with_where_they_are_revealed() {
    let (folder, node) = guarded();
    let list = ["list", "--limit", "many", "--prefix", "192.0."];
    let veiled = complaint(&keys(&folder, &node, "tokens", &list));
    assert!(veiled.contains("reveal: true"), "{veiled}");

    let folder = Folder::with(
        &crate::support::node::POLICY.replace("per: address", "per: address, reveal: true"),
    );
    let node = Node::open(&folder.policy());
    folder.write("tokens", "any token is right where none is asked for\n");
    for address in ["192.0.2.2", "192.0.2.1", "198.51.100.1"] {
        let body = serde_json::json!({ "limits": [{ "name": "many", "subject": { "address": address } }] }).to_string();
        let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        let mut client = Client::connect(node.listener("http")).unwrap();
        client.send(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())).unwrap();
        assert_eq!(client.answer().unwrap().status, 200);
    }
    let response = response(&keys(&folder, &node, "tokens", &list));
    assert!(
        response.starts_with("address=192.0.2.1\naddress=192.0.2.2\nonly subjects"),
        "{response}"
    );
    let most = ["list", "--limit", "many", "--most", "2", "--json"];
    let listed: serde_json::Value =
        serde_json::from_str(&self::response(&keys(&folder, &node, "tokens", &most))).unwrap();
    assert_eq!((&listed["more"], &listed["source"]), (&true.into(), &"recent".into()));
    assert_eq!(listed["subjects"].as_array().unwrap().len(), 2);
}

#[test]
fn what_the_node_does_not_understand_is_reported_in_its_words() {
    let (folder, node) = guarded();
    let rows: [(&[&str], &str); 4] = [
        (&["show", "--limit", "man", "address=192.0.2.1"], "did you mean \"many\"?"),
        (&["reset", "--limit", "many", "address=nowhere"], "not an IP address"),
        (
            &[
                "override",
                "--limit",
                "many",
                "address=192.0.2.1",
                "--quota",
                "7",
                "--for",
                "1y",
                "--reason",
                "a test",
            ],
            "expires_in",
        ),
        (
            &["override", "--group", "--blocked", "--for", "1h", "--reason", "a test"],
            "exactly one value",
        ),
    ];
    for (arguments, expected) in rows {
        let refused = complaint(&keys(&folder, &node, "tokens", arguments));
        assert!(refused.contains(expected), "{arguments:?}: {refused}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["keys", "overrides", "--admin", "https://localhost:1"])
        .output()
        .unwrap();
    assert!(complaint(&output).contains("http://HOST:PORT"));
}
