//! What an operator sees first: which node this is, what is down, what happened before the page was
//! opened, and what rules match and would refuse.

use serde_json::json;

use super::{Browser, address, charge, decide, node, open};
use crate::support::node::{Folder, Node, command};

const ANY: &str = "127.0.0.1:0";

#[test]
fn a_dead_shard_is_a_banner_at_the_top_of_every_view() {
    // Nothing listens at port 1.
    let folder = Folder::with(
        "limits: { all: { quota: 3, window: 1h } }\n\
         rules: [ { limits: all } ]\n\
         store: { redis: { shards: { east: { primary: \"redis://127.0.0.1:1\" } } } }\n",
    );
    let mut start = command(&folder.policy(), &["--http", ANY, "--admin", ANY]);
    start.env("TOLLGATE_SECRET", "a-secret-of-the-tests");
    let node = Node::start(start);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    for view in ["", "limits", "policy", "overrides"] {
        page.go(&address(&node, view));
        page.until(
            "document.querySelector('#alerts[role=alert] .bad')?.innerText.includes('Shard east is down')",
        );
        // Above the view, in the first screen.
        page.until(
            "document.getElementById('alerts').getBoundingClientRect().bottom
                <= document.getElementById('content').getBoundingClientRect().top",
        );
        page.until("document.title.endsWith('⚠')");
    }
    page.is_clean();
}

#[test]
fn a_node_without_alerts_has_no_banner() {
    let (folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    page.until("document.querySelector('#dot.good')");
    page.until("document.getElementById('alerts').hidden && !document.title.includes('⚠')");
    folder.write("policy.yaml", "limits: [");
    page.shows("The policy file was rejected");
    page.until("document.querySelector('#dot.warn')");
    page.click("#alerts a", "Details");
    page.shows("the previous policy stays in force");
    page.is_clean();
}

#[test]
fn the_page_names_its_node() {
    let folder = Folder::with(super::POLICY);
    let mut start = command(&folder.policy(), &["--http", ANY, "--admin", ANY]);
    start.env("TOLLGATE_NODE_NAME", "edge-7 <b>");
    let node = Node::start(start);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    page.until("document.getElementById('node').textContent === 'edge-7 <b>'");
    page.until("document.title === 'Overview · edge-7 <b> · Tollgate'");
    page.click("#views a", "Limits");
    page.until("document.title === 'Limits · edge-7 <b> · Tollgate'");
    page.is_clean();
    // By default it is the name of the host.
    let (_folder, node) = super::node("");
    page.go(&address(&node, ""));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    page.until(&format!("document.getElementById('node').textContent === {}", json!(host.trim())));
}

#[test]
fn charts_start_with_what_the_node_remembers_of_the_last_hour() {
    let (_folder, node) = node("");
    charge(&node, "few", ("user", "mallory"), 5);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    for _ in 0..2 {
        page.shows("Busiest limits");
        page.value("document.querySelector('summary').click()");
        // The page was opened after the charges, so its own samples are all zero.
        page.until(
            "[...document.querySelectorAll('details[open] tbody tr')]
                .some((row) => Number(row.querySelector('td').innerText) > 0)",
        );
        page.until(
            "document.querySelector('svg.chart path.admitted').getAttribute('d').includes('L')",
        );
        page.value("{ window.isLeft = true; setTimeout(() => location.reload()); }");
        page.until("!window.isLeft && document.readyState === 'complete'");
    }
    page.go(&address(&node, "limits/few"));
    page.until("document.querySelector('svg.chart path.refused')?.getAttribute('d').includes('L')");
    page.until("document.querySelector('svg.chart').getAttribute('aria-label').includes('now')");
    page.is_clean();
}

#[test]
fn rules_in_shadow_mode_show_what_they_would_refuse() {
    let folder = Folder::with(
        "subjects: { user: { header: x-user } }\n\
         limits: { new: { quota: 2, window: 1h, per: user }, old: { quota: 100, window: 1h, per: user } }\n\
         rules:\n  - { name: tried, mode: shadow, limits: new }\n  - { name: real, limits: old }\n\
         rules_apply: all_matches\n",
    );
    let node = Node::open(&folder.policy());
    for _ in 0..5 {
        decide(&node, r#"{"request":{"method":"GET","path":"/","headers":{"x-user":"mallory"}}}"#);
    }
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "limits");
    let cell = |limit: &str, label: &str| {
        format!(
            "[...document.querySelectorAll('tbody tr')]
                .find((row) => row.firstChild.innerText === '{limit}')
                ?.querySelector('[data-label=\"{label}\"]').innerText"
        )
    };
    page.until(&format!("{} === '3'", cell("new", "Would refuse")));
    page.until(&format!("{} === '–'", cell("old", "Would refuse")));
    page.click("#views a", "Policy");
    page.until(&format!("{} === '3 of 5'", cell("tried", "Would refuse")));
    page.until(&format!("{} === 'shadow'", cell("tried", "Mode")));
    page.until(&format!("{} === '–'", cell("real", "Would refuse")));
    page.click("tbody a", "new");
    page.shows("In shadow mode the limit would have refused 3 of 5 requests.");
    page.shows("no subjects: its rules are in shadow mode");
    page.until("document.querySelector('.legend').innerText.includes('Would refuse')");
    page.is_clean();
}

#[test]
fn a_rule_shows_what_it_matches_and_its_limits() {
    let folder = Folder::with(
        "subjects: { user: { header: x-user }, token: { header: authorization } }\n\
         limits: { few: { quota: 3, window: 1h, per: user } }\n\
         rules:\n\
         \x20 - name: writes\n\
         \x20   match: { method: [POST, PUT], path: /repos/**, host: api.example.com, \
                   header: { x-plan: \"<b>free\" }, has: user, lacks: token }\n\
         \x20   limits: [ { few: 2 } ]\n\
         \x20 - { name: rest, limits: few }\n",
    );
    let node = Node::open(&folder.policy());
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "policy");
    let cell = |rule: &str, label: &str| {
        format!(
            "[...document.querySelectorAll('tbody tr')]
                .find((row) => row.firstChild.innerText === '{rule}')
                ?.querySelector('[data-label={label}]').innerText"
        )
    };
    for condition in [
        "method POST or PUT",
        "path /repos/**",
        "host api.example.com",
        "header x-plan: <b>free",
        "has user",
        "has no token",
    ] {
        let notice =
            format!("{}?.split('\\n').includes({})", cell("writes", "Matches"), json!(condition));
        page.until(&notice);
    }
    page.until(&format!("{} === 'few × 2 3 per 1h, per user'", cell("writes", "Charges")));
    page.until(&format!("{} === 'every request'", cell("rest", "Matches")));
    page.click("tbody a", "few");
    page.shows("writes charges 2 units a request");
    page.shows("path /repos/**");
    page.is_clean();
}
