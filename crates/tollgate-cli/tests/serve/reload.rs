//! What is read anew on SIGHUP.

use crate::client::{ask, say};
use crate::world::{Folder, Node, POLICY, command};

const FIRST: &str = "the-first-token-of-all";
const SECOND: &str = "the-second-token-of-all";

#[test]
fn tokens_are_replaced_on_sighup() {
    let folder = Folder::new("");
    folder.write("tokens.txt", FIRST);
    let door = format!(
        "{{ listen: \"127.0.0.1:0\", tokens: {{ file: {} }} }}",
        folder.path("tokens.txt").display()
    );
    folder.write("policy.yaml", &format!("{POLICY}serve: {{ http: {door}, resp: {door} }}\n"));
    let node = Node::start(command(&folder.policy(), &[]));
    let admitted = |token: &str| {
        let status = ask(node.door("http"), "POST", "/v1/check", Some(token)).status;
        let reply = &say(node.door("resp"), &[&format!("AUTH {token}")])[0];
        assert_eq!(status == 200, reply == "+OK", "{status} {reply}");
        status == 200
    };
    assert!(admitted(FIRST) && !admitted(SECOND));
    folder.write("tokens.txt", SECOND);
    read_anew(&node, "tokens read anew");
    assert!(admitted(SECOND) && !admitted(FIRST));
    folder.write("tokens.txt", "short");
    read_anew(&node, "the tokens in force stay so");
    assert!(admitted(SECOND) && !admitted(FIRST));
}

/// Both doors have read the file.
fn read_anew(node: &Node, words: &str) {
    node.signal("-HUP");
    node.tells(words);
    node.tells(words);
}
