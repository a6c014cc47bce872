//! Runs the commands of the guide's page on migration from top to bottom with real stores.

use std::process::Command;

use crate::kit::Server as Redis;
use crate::memcached::Server as Memcached;
use crate::support::node::{Folder, Node, command};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/migration.md");

/// The prerequisites of the page: a policy for its stores, and a token for administrators.
const POLICY: &str = "
subjects: { token: { header: authorization } }
limits: { core: { quota: 5, window: 1h, per: token } }
rules: [ { limits: core } ]
";
/// A setting with a long deadline, because other tests on the machine can slow down the servers.
const PATIENT: &str = "deadline: 10s";
const TOKEN: &str = "a-token-of-an-administrator";

/// Returns the fenced blocks of a page: their kinds and texts.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a block has lines")).collect()
}

/// Starts a process with the current policy and the token for administrators.
fn start(folder: &Folder) -> Node {
    let any = "127.0.0.1:0";
    let mut command = command(&folder.policy(), &["--http", any]);
    command.env("TOLLGATE_SECRET", "a secret that all nodes share");
    Node::start(command)
}

/// Runs the commands of one block, and returns their output.
fn run(block: &str, node: &Node, folder: &Folder) -> String {
    let listeners = block
        .replace("127.0.0.1:8182", node.listener("admin"))
        .replace("127.0.0.1:8181", node.listener("http"));
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=1", "60", "bash", "-c", &format!("set -e\n{listeners}")]);
    shell.current_dir(folder.policy().parent().unwrap());
    let output = shell.env("PATH", path).env("TOKEN", TOKEN).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{block}: {complaints}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn every_command_of_it_does_what_it_shows() {
    let (old, new) = (Memcached::start(), Redis::start().await);
    let folder = Folder::with("");
    folder.write("tokens", &format!("{TOKEN}\n"));
    let text = std::fs::read_to_string(PAGE).unwrap();
    let (mut node, mut response, mut ran) = (None, String::new(), 0);
    for (kind, block) in blocks(&text) {
        match kind {
            "yaml" => {
                let store = block
                    .replace("{ memcached: {", &format!("{{ memcached: {{ {PATIENT},"))
                    .replace("{ redis: {", &format!("{{ redis: {{ {PATIENT},"))
                    .replace("127.0.0.1:11211", &old.address().to_string())
                    .replace("redis://127.0.0.1:6379", &new.url());
                let tokens = folder.path("tokens");
                let listeners = format!(
                    "serve: {{ admin: {{ listen: \"127.0.0.1:0\", tokens: {{ file: \"{}\" }} }} }}\n",
                    tokens.display()
                );
                folder.write("policy.yaml", &format!("{POLICY}{store}{listeners}"));
                node = Some(start(&folder));
            }
            "sh" => {
                response = run(block, node.as_ref().expect("a policy comes first"), &folder);
                ran += 1;
            }
            "text" => {
                let mut rest = response.as_str();
                for shown in block.lines() {
                    let after = rest.split_once(shown).map(|(_, after)| after);
                    rest = after.unwrap_or_else(|| panic!("no {shown:?} in\n{response}"));
                }
            }
            other => panic!("{other:?}: every block of this page is run or looked for"),
        }
    }
    assert!(ran > 3, "{ran} commands are hardly the page's");
}
