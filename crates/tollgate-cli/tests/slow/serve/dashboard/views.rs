//! Every view shows the node's data.

use std::fmt::Write;

use serde_json::json;

use super::{Browser, charge, node, open};
use crate::support::node::{Folder, Node};

#[test]
fn each_view_shows_what_the_node_says() {
    let (_folder, node) = node("");
    charge(&node, "few", ("user", "mallory"), 5);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    page.shows("Busiest limits");
    // Three were admitted and two refused before the page was opened.
    let cells = "[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)";
    page.until(&format!("{cells}.some((text) => /^few\\s+\\S+\\s+\\S+\\s+2$/.test(text))"));
    page.shows("Counters are kept in the memory of this process.");
    page.until("document.querySelector('svg.chart').getAttribute('aria-label').includes('now')");
    page.value("document.querySelector('summary').click()");
    page.until("document.querySelectorAll('details[open] tbody tr').length > 0");
    page.click("#views a", "Limits");
    page.shows("3 per 1h");
    page.shows("Counted per");
    page.click("tbody a", "few");
    page.shows("Requests since the node started: 3 admitted, 2 refused by this limit.");
    page.shows("named charges 1 unit a request");
    page.click("#views a", "Top subjects");
    page.shows("Units refused at this node");
    // The limit does not reveal subjects: a hash of the refused one.
    page.until("/^user=#[0-9a-f]{32}\\s+few\\s+2\\s+0\\s+Override$/.test(document.querySelector('tbody tr').innerText)");
    page.click("#views a", "Policy");
    page.shows("2 limits, 2 rules, 2 kinds of subjects");
    let charges =
        "[...document.querySelectorAll('tbody tr:first-child td a')].map((link) => link.innerText)";
    page.until(&format!("{charges}.join() === 'few,many'"));
    page.click("#views a", "Rollout");
    page.shows("This node has one store.");
    page.is_clean();
}

#[test]
fn a_candidate_is_compared_on_the_page_of_its_limit() {
    let folder = Folder::with(
        "subjects: { user: { header: x-user } }\n\
         limits: { few: { quota: 4, window: 1h, per: user, candidate: { quota: 1, window: 2h } } }\n\
         rules: [ { limits: few } ]\n",
    );
    let node = Node::open(&folder.policy());
    charge(&node, "few", ("user", "mallory"), 6);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "limits/few");
    page.shows("evaluated on the same requests, without refusing any: 1 per 2h, fixed window.");
    let facts = "document.querySelector('section[aria-label=Candidate] dl').innerText";
    page.until(&format!("/Both admit\\s+1\\s+Only the candidate refuses\\s+3\\s+Only the limit refuses\\s+0\\s+Both refuse\\s+2/.test({facts})"));
    page.is_clean();
}

#[test]
fn subjects_are_found_on_the_page_of_a_limit_that_reveals_them() {
    let (_veiled, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "limits/few");
    page.shows("named charges 1 unit a request");
    page.until("document.querySelector('section[aria-label=Subjects]').hidden");

    let folder = Folder::with(
        "subjects: { user: { header: x-user } }\n\
         limits: { few: { quota: 4, window: 1h, per: user, reveal: true } }\n\
         rules: [ { limits: few } ]\n",
    );
    let node = Node::open(&folder.policy());
    for user in ["mallory", "<img src=x onerror=hit()>", "mall", "ann"] {
        charge(&node, "few", ("user", user), 1);
    }
    page.go(&super::address(&node, "limits/few"));
    // A hidden field does not accept keys.
    page.until("document.querySelector('section[aria-label=Subjects]')?.hidden === false");
    page.write("Prefix", "mal");
    page.press("Enter");
    page.shows("2 subjects from recent decisions of this node (the store keeps only hashes).");
    page.write("Prefix", "<");
    page.click("button", "List");
    page.shows("1 subject from recent decisions");
    page.click("section a", "user=<img src=x onerror=hit()>");
    page.shows("1 limit counts this subject");
    page.is_clean();
}

#[test]
fn a_shard_that_is_not_there_is_informed_of() {
    // Nothing listens at port 1.
    let folder = Folder::with(
        "limits: { all: { quota: 3, window: 1h } }\n\
         rules: [ { limits: all } ]\n\
         store: { redis: { shards: { east: { primary: \"redis://127.0.0.1:1\" } } } }\n",
    );
    let any = "127.0.0.1:0";
    let mut command =
        crate::support::node::command(&folder.policy(), &["--http", any, "--admin", any]);
    command.env("TOLLGATE_SECRET", "a-secret-of-the-tests");
    let node = Node::start(command);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    page.shows("Counters are kept in Redis, in one or more shards.");
    page.until("document.querySelector('.pill')?.innerText === 'down'");
    page.is_clean();
}

#[test]
fn a_thousand_limits_are_searched_and_paged() {
    let mut policy = String::from("subjects: { user: { header: x-user } }\nlimits:\n");
    for index in 0..1_000 {
        writeln!(policy, "  limit-{index:04}: {{ quota: 3, window: 1h, per: user }}").unwrap();
    }
    policy += "rules: [ { limits: limit-0000 } ]\n";
    let folder = Folder::with(&policy);
    let node = Node::open(&folder.policy());
    charge(&node, "limit-0777", ("user", "mallory"), 5);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "limits");
    page.shows("1–50 of 1,000");
    page.click("button.sort", "Refused in total");
    page.until("document.querySelector('tbody th')?.innerText === 'limit-0777'");
    assert_eq!(page.value("document.querySelectorAll('tbody tr').length"), json!(50));
    page.click("button.sort", "Limit");
    page.click(".pages button", "Next");
    page.shows("51–100 of 1,000");
    page.until("document.querySelector('tbody th')?.innerText === 'limit-0050'");
    page.value("document.querySelector('input[type=search]').focus()");
    page.call("Input.insertText", &json!({ "text": "T-0999" }));
    page.shows("1 row");
    page.until("document.querySelector('tbody th')?.innerText === 'limit-0999'");
    // Two more updates change neither the search nor the scroll position.
    let looks = "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/metrics')).length";
    let observed = page.value(looks).as_u64().unwrap();
    page.until(&format!("{looks} > {}", observed + 2));
    assert_eq!(page.value("document.activeElement.value"), json!("T-0999"));
    assert_eq!(page.value("document.querySelectorAll('tbody tr').length"), json!(1));
    // The status of a subject with a thousand limits needs several requests.
    page.go(&super::address(&node, "subject?user=mallory"));
    page.shows("1,000 limits count this subject");
    page.shows("of 1,000");
    page.is_clean();
}
