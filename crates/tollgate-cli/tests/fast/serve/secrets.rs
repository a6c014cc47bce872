//! No output contains tokens.

use std::fs;

use crate::support::client::{fetch, send_line};
use crate::support::node::{Folder, Node, POLICY, command};

const IN_FILE: &str = "canary-in-a-file-4711";
const IN_ENVIRONMENT: &str = "canary-in-the-environment-4711";
const SENT: &str = "canary-that-was-sent-4711";

#[test]
fn no_output_shows_a_token() {
    let folder = Folder::new("");
    folder.write("tokens.txt", IN_FILE);
    let tokens = folder.path("tokens.txt").display().to_string();
    let serve = format!(
        "serve: {{ http: {{ listen: \"127.0.0.1:0\", tokens: {{ file: {tokens} }} }}, \
         resp: {{ listen: \"127.0.0.1:0\", tokens: {{ env: DOOR_TOKENS }} }} }}\n"
    );
    folder.write("policy.yaml", &format!("{POLICY}{serve}"));
    let mut start = command(&folder.policy(), &[]);
    start.env("DOOR_TOKENS", IN_ENVIRONMENT).env("RUST_LOG", "trace");
    let node = Node::start(start);
    let mut shown = fs::read_to_string(format!("/proc/{}/cmdline", node.id())).unwrap();
    for token in [IN_FILE, SENT] {
        for path in ["/v1/standing", "/v1/nothing", "/readyz"] {
            shown += &format!("{:?}", fetch(node.listener("http"), "GET", path, Some(token)));
        }
    }
    for token in [IN_ENVIRONMENT, SENT] {
        let commands = [&format!("AUTH {token}"), "CLIENT LIST", "INFO", "COMMAND INFO AUTH"];
        shown += &send_line(node.listener("resp"), &commands.map(|command| command)).concat();
    }
    // An invalid file is reported without its content.
    folder.write("tokens.txt", "canary-4711");
    node.signal("-HUP");
    node.wait_for_log("tokens not reloaded");
    node.signal("-TERM");
    let (code, response) = node.ended();
    assert_eq!(code, Some(0));
    shown += &response;
    let help = command(&folder.policy(), &["--help"]).env("DOOR_TOKENS", IN_ENVIRONMENT).output();
    shown += &String::from_utf8(help.unwrap().stdout).unwrap();
    assert!(shown.contains("tokens") && !shown.contains("4711"), "{shown}");
}
