//! Overrides, set and removed in the dashboard.

use serde_json::{Value, json};

use super::names::SCRIPTS;
use super::{Browser, Page, charge, node, open};
use crate::support::client::fetch;
use crate::support::node::Node;

fn in_force(node: &Node) -> Vec<Value> {
    let response = fetch(node.listener("admin"), "GET", "/v1/overrides", None);
    let response: Value = serde_json::from_str(&response.body).unwrap();
    response["overrides"].as_array().unwrap().clone()
}

/// Selects the option `value` of the field with the label `label`.
fn pick(page: &Page, label: &str, value: &str) {
    let field = format!(
        "[...document.querySelectorAll('label')].find((one) => one.textContent === {})?.control",
        json!(label)
    );
    page.until(&field);
    page.value(&format!(
        "{{ const field = {field}; field.value = {}; field.dispatchEvent(new Event('change')); }}",
        json!(value)
    ));
}

fn rows(page: &Page, count: usize) {
    page.until(&format!("document.querySelectorAll('tbody button').length === {count}"));
}

#[test]
fn the_one_who_is_refused_most_is_found_blocked_and_let_in_again() {
    let (_folder, node) = node("");
    charge(&node, "few", ("user", "mallory"), 5);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "top");
    page.click("tbody a", "Override");
    page.until("document.title.startsWith('Overrides')");
    page.write("Reason", "scraping");
    page.click("button", "Set");
    page.shows("The override is in force.");
    rows(&page, 1);
    let all = in_force(&node);
    assert_eq!((&all[0]["limit"], &all[0]["blocked"]), (&json!("few"), &json!(true)));
    assert_eq!(all[0]["reason"], "scraping");
    // A new override of the same subject replaces the previous one.
    pick(&page, "Effect", "quota");
    page.write("Quota", "40");
    page.write("Duration", "7d");
    page.click("button", "Set");
    page.shows("40 units");
    rows(&page, 1);
    assert_eq!(in_force(&node)[0]["quota"], 40);
    page.click("tbody button", "Remove");
    page.shows("No overrides: the policy applies to all subjects.");
    assert_eq!(in_force(&node), Vec::<Value>::new());
    // Errors of the node are shown, and the form keeps its input.
    pick(&page, "Limit", "");
    page.click("button", "Set");
    page.shows("`quota` requires `limit`");
    page.is_clean();
}

#[test]
fn what_is_said_of_a_subject_stands_on_its_page() {
    let (_folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "overrides?limit=few&user=mallory");
    page.shows("Effect");
    let reason = SCRIPTS[0];
    page.write("Reason", reason);
    page.click("button", "Set");
    rows(&page, 1);

    // Blocked, and nothing was used; other limits of the subject are unchanged.
    page.go(&super::address(&node, "subject?user=mallory&address=192.0.2.1"));
    row_shows(&page, "many", "admitted 0 1,000 1,000");
    row_shows(&page, "few", "blocked – – –");
    let overrides = "document.querySelector('section[aria-label=Overrides]')";
    let response = format!("{overrides}.innerText");
    for word in ["few", "blocked", "all subjects with user=#", reason] {
        page.until(&format!("{response}.includes({})", json!(word)));
    }
    assert_eq!(page.value(&format!("{overrides}.querySelectorAll('tbody tr').length")), json!(1));

    let quota = json!({
        "limit": "many", "group": { "address": "192.0.2.0/24" }, "quota": 7, "expires_in": "1h",
        "reason": "a neighbour",
    });
    put(&page, &quota);
    row_shows(&page, "many", "admitted 0 7 7");
    page.shows("all subjects with address=192.0.2.0/24");
    remove(&page, "limit=many&group[address]=192.0.2.0/24");

    // Each query shows the overrides at that time.
    for (effect, few) in [
        (json!({ "unlimited": true }), "unlimited – – –"),
        (json!({ "counted": true }), "counted, never refused – – –"),
        (json!({ "quota": 40 }), "admitted 0 40 40"),
    ] {
        let mut body = json!({
            "limit": "few", "group": { "user": "mallory" }, "expires_in": "1h", "reason": "again",
        });
        body.as_object_mut().unwrap().extend(effect.as_object().unwrap().clone());
        put(&page, &body);
        row_shows(&page, "few", few);
        page.until(&format!("{response}.includes('again')"));
        row_shows(&page, "many", "admitted 0 1,000 1,000");
    }
    remove(&page, "limit=few&group[user]=mallory");
    row_shows(&page, "few", "admitted 0 3 3");
    page.until(&format!("!{overrides}"));
    page.is_clean();
}

/// Waits until the page of a subject shows this status of `limit`, in the columns from "Decision"
/// to "Remaining".
#[track_caller]
fn row_shows(page: &Page, limit: &str, response: &str) {
    page.until(&format!(
        "[...document.querySelectorAll('table')]
            .find((table) => table.caption.textContent === 'Status of each limit')
            ?.querySelectorAll('tbody tr').values()
            .some(({{ children: [name, , ...cells] }}) => name.innerText === {}
                && cells.slice(0, 4).map((cell) => cell.innerText).join(' ') === {})",
        json!(limit),
        json!(response),
    ));
}

/// Sets an override from the page itself.
fn put(page: &Page, body: &Value) {
    let status = page.value(&format!(
        "fetch('../v1/overrides', {{ method: 'PUT', body: {}, headers: {{ 'content-type': 'application/json' }} }})
            .then(({{ status }}) => status)",
        json!(body.to_string())
    ));
    assert_eq!(status, json!(200));
}

fn remove(page: &Page, whose: &str) {
    let path = json!(format!("../v1/overrides?{whose}"));
    let status = page
        .value(&format!("fetch({path}, {{ method: 'DELETE' }}).then(({{ status }}) => status)"));
    assert_eq!(status, json!(200));
}

#[test]
fn networks_and_exact_subjects_are_named() {
    let (_folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "overrides");
    page.write("address", "192.0.2.0/24");
    page.write("Reason", "a neighbour");
    page.click("button", "Set");
    page.shows("all subjects with address=192.0.2.0/24");
    page.value("document.querySelector('main form').reset()");
    pick(&page, "Limit", "few");
    pick(&page, "Applies to", "subject");
    pick(&page, "Effect", "unlimited");
    page.write("user", "ann");
    page.write("Reason", "a partner");
    page.click("button", "Set");
    rows(&page, 2);
    page.shows("unlimited");
    page.click("tbody button", "Remove");
    rows(&page, 1);
    page.is_clean();
}

#[test]
fn a_limit_is_switched_for_everybody() {
    let (_folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "overrides?limit=few");
    pick(&page, "Applies to", "everybody");
    pick(&page, "Effect", "counted");
    page.write("Reason", "it refuses partners");
    page.click("button", "Set");
    page.shows("counted, never refused");
    charge(&node, "few", ("user", "mallory"), 5);
    page.go(&super::address(&node, "limits/few"));
    page.shows("An override for all subjects is in force until");
    page.shows("requests are counted and never refused. Reason: it refuses partners");
    page.shows("0 refused by this limit");
    page.go(&super::address(&node, "overrides"));
    page.click("tbody button", "Remove");
    page.shows("No overrides: the policy applies to all subjects.");
    page.is_clean();
}

#[test]
fn what_is_switched_off_is_reported_above_every_view_until_it_is_lifted() {
    let (_folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "overrides");
    pick(&page, "Applies to", "rule");
    pick(&page, "Rule", "named");
    page.until("document.querySelector('option[value=blocked]').disabled");
    pick(&page, "Effect", "unlimited");
    page.write("Reason", "it refuses <b>partners</b>");
    page.click("button", "Set");
    rows(&page, 1);
    assert_eq!((&in_force(&node)[0]["rule"]), (&json!("named")));
    pick(&page, "Applies to", "shedding");
    pick(&page, "Which load shedding", "worker");
    pick(&page, "Effect", "counted");
    page.write("Reason", "too much is shed");
    page.click("button", "Set");
    rows(&page, 2);
    for view in ["", "limits", "subject", "policy", "what-if"] {
        page.go(&super::address(&node, view));
        page.shows("Rule named is off until");
        page.shows("it refuses <b>partners</b>");
        page.shows("Load shedding by each node’s own load (worker) counts and never refuses until");
    }
    page.go(&super::address(&node, "policy"));
    page.shows("switched off");
    page.go(&super::address(&node, "overrides"));
    for left in [1, 0] {
        page.click("tbody button", "Remove");
        rows(&page, left);
    }
    page.until("document.getElementById('switches').hidden");
    page.is_clean();
}

#[test]
fn reasons_and_values_that_are_scripts_are_shown_and_do_not_run() {
    let (_folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "overrides");
    for script in SCRIPTS {
        page.write("user", script);
        page.write("Reason", script);
        page.click("button", "Set");
        page.until(&format!(
            "[...document.querySelectorAll('tbody td')].some(({{ textContent }}) => textContent === {})",
            json!(script)
        ));
    }
    assert_eq!(in_force(&node).len(), SCRIPTS.len());
    page.go(&super::address(
        &node,
        "overrides?user=%3Cscript%3Ehit()%3C%2Fscript%3E&limit=%3Cb%3E",
    ));
    page.until("document.querySelector('main form input')");
    page.is_clean();
}

#[test]
fn an_override_is_set_and_lifted_with_keys_alone() {
    let (_folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "overrides");
    page.until("document.querySelector('main form input')");
    let label = "it.labels?.[0]?.textContent";
    super::keyboard::tab_to(&page, &format!("{label} === 'user'"));
    page.call("Input.insertText", &json!({ "text": "mallory" }));
    super::keyboard::tab_to(&page, &format!("{label} === 'Reason'"));
    page.call("Input.insertText", &json!({ "text": "scraping" }));
    page.press("Enter");
    rows(&page, 1);
    super::keyboard::tab_to(&page, "it.textContent === 'Remove'");
    page.press("Enter");
    page.shows("Removed: all subjects with user=#");
    page.until("document.getElementById('announcer').textContent.startsWith('Removed')");
    page.is_clean();
}
