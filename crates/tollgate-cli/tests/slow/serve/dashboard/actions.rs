//! Actions of administrators in the dashboard.

use serde_json::{Value, json};

use super::{Browser, POLICY, charge, decide, node, open};
use crate::support::client::fetch;
use crate::support::node::{Folder, Node};

#[test]
fn the_policy_is_read_again_and_mistakes_are_reported() {
    let (folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "policy");
    page.shows("In force since");
    folder.write("policy.yaml", &POLICY.replace("quota: 3", "quota: three"));
    page.click("button", "Reload the file");
    page.shows("The policy was not reloaded");
    page.shows("policy.yaml:5:");
    folder.write("policy.yaml", &POLICY.replace("quota: 3", "quota: 4"));
    // The node may have loaded the file by itself before the button is pressed.
    page.until("!document.querySelector('main button').disabled");
    page.click("button", "Reload the file");
    page.until("document.querySelector('.notice.good')?.innerText.includes('ersion')");
    page.until("document.querySelector('.state').innerText !== ''");
    page.click("#views a", "Limits");
    page.shows("4 per 1h");
    page.is_clean();
}

#[test]
fn a_subject_is_looked_at_and_forgotten() {
    let (_folder, node) = node("");
    let name = "mallory & sons/🦀";
    charge(&node, "few", ("user", name), 5);
    charge(&node, "many", ("address", "192.0.2.7"), 2);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "subject");
    page.write("user", name);
    page.click("button", "Show");
    page.shows("1 limit counts this subject");
    let row = "document.querySelector('tbody').innerText";
    page.until(&format!("/refused\\s+3\\s+3\\s+0/.test({row})"));
    page.write("address", "192.0.2.7");
    page.click("button", "Show");
    page.shows("2 limits count this subject");
    page.click("button", "Reset usage");
    page.until("document.querySelector('dialog').open");
    page.click("dialog button", "Reset");
    page.shows("The usage was reset.");
    page.until(&format!("/admitted\\s+0\\s+3\\s+3/.test({row})"));
    assert!(node.response().contains("an administrator reset the usage"));
    page.write("address", "nowhere");
    page.click("button", "Show");
    page.until("document.querySelector('.notice.bad')");
    page.is_clean();
}

#[test]
fn a_rollout_is_turned() {
    let side = "{ memory: {} }";
    let (_folder, node) =
        node(&format!("store: {{ rollout: {{ percent: 10%, from: {side}, to: {side} }} }}\n"));
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "rollout");
    page.shows("10 %");
    page.write("Percent of clients", "35");
    page.click("button", "Set");
    page.shows("Changed from 10 % to 35 %");
    page.until("document.querySelector('.big').innerText === '35 %'");
    let status = fetch(node.listener("admin"), "GET", "/v1/status", None);
    let status: Value = serde_json::from_str(&status.body).unwrap();
    assert_eq!(status["counts"]["percent"], json!(35));
    page.is_clean();
}

#[test]
fn a_log_is_simulated_beside_another_policy() {
    let (folder, node) = node("");
    let line = |second: u32| {
        format!("192.0.2.1 - - [10/Oct/2026:13:55:{second:02} +0000] \"GET / HTTP/1.1\" 200 5\n")
    };
    let log: String = (0..20).map(line).collect::<String>() + "no entry\n";
    folder.write("access.log", &log);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "what-if");
    page.choose("input[type=file]", &folder.path("access.log"));
    let tried = POLICY.replace("quota: 1000", "quota: 5").replace('\n', "\\n");
    page.write("Another policy to try (optional)", &tried.replace("\\n", "\n"));
    page.click("button", "Simulate");
    page.shows("By limit");
    page.shows("line 21");
    let rows = "[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)";
    page.until(&format!(
        "{rows}.some((text) => /the policy to try\\s+20\\s+5\\s+15\\s/.test(text))"
    ));
    page.until(&format!("{rows}.some((text) => /^many\\s+1,000 per 1h\\s|^many\\s+1000 per 1h\\s/.test(text) && /15$/.test(text))"));
    // No subject was charged.
    let status = fetch(node.listener("admin"), "GET", "/metrics", None).body;
    assert!(status.contains("tollgate_memory_entries 0\n"), "{status}");
    page.write("Another policy to try (optional)", "limits: [");
    page.click("button", "Simulate");
    page.until("document.querySelector('.notice.bad')?.innerText.includes('the policy to try:1:')");
    page.is_clean();
}

#[test]
fn the_requests_of_the_node_are_simulated_and_drawn() {
    let (_folder, node) = node("");
    for _ in 0..20 {
        let request = r#"{"request":{"method":"GET","path":"/a","headers":{"x-user":"mallory"}}}"#;
        decide(&node, request);
    }
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "what-if");
    page.write("Another policy to try (optional)", &POLICY.replace("quota: 3,", "quota: 12,"));
    page.click("button", "Simulate");
    page.shows("The sample contains all requests");
    let rows = "[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)";
    page.until(&format!(
        "{rows}.some((text) => /the policy to try\\s+20\\s+12\\s+8\\s/.test(text))"
    ));
    page.until("document.querySelector('svg.chart path.refused') !== null");
    page.until("document.querySelector('svg.chart path.wouldRefuse') !== null");
    let bars = "[...document.querySelectorAll('dl.bars dd')].map((bars) => bars.innerText.trim())";
    page.until(&format!("{bars}.some((text) => /^17\\s+8$/.test(text))"));
    page.is_clean();
}

#[test]
fn a_token_is_asked_for_kept_by_the_tab_and_forgotten() {
    let right = "the-right-token-of-the-node";
    let folder = Folder::with(POLICY);
    folder.write("tokens.txt", right);
    let tokens = folder.path("tokens.txt").display().to_string();
    let listener = format!("{{ listen: \"127.0.0.1:0\", tokens: {{ file: {tokens} }} }}");
    folder.write(
        "policy.yaml",
        &format!("{POLICY}serve: {{ http: {listener}, admin: {listener} }}\n"),
    );
    let node = Node::start(crate::support::node::command(&folder.policy(), &[]));
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "limits");
    page.shows("This listener requires a token");
    page.write("Token", "a-wrong-token-of-the-node");
    page.click("button", "Sign in");
    page.shows("the token is not valid for this listener");
    page.write("Token", right);
    page.click("button", "Sign in");
    page.shows("3 per 1h");
    assert_eq!(page.value("document.cookie"), json!(""));
    page.go(&super::address(&node, "policy"));
    page.shows("Reload the file");
    page.click("button", "Sign out");
    page.shows("This listener requires a token");
    assert_eq!(page.value("sessionStorage.length"), json!(0));
    page.is_clean();
}
