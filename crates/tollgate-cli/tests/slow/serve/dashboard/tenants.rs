//! Tenants, searched, set, changed and removed in the dashboard.

use serde_json::{Value, json};

use super::names::SCRIPTS;
use super::{Browser, address};
use crate::support::client::fetch;
use crate::support::node::Node;
use crate::support::world::policy;

fn rows(node: &Node) -> Vec<Value> {
    let response = fetch(node.listener("admin"), "GET", "/v1/tenants", None);
    let response: Value = serde_json::from_str(&response.body).unwrap();
    response["tenants"].as_array().unwrap().clone()
}

#[test]
fn a_tenant_is_set_searched_changed_and_removed() {
    let node = Node::open(&policy("tenants.yaml"));
    let mut browser = Browser::start();
    let page = browser.open(&address(&node, "tenants"));
    page.shows("No tenants are set: all have the default quotas.");
    page.shows("Limits: requests, exports");
    for (name, plan, own) in [("acme", "pro", "exports=50"), (SCRIPTS[0], "free", "")] {
        page.write("Tenant", name);
        page.write("Plan", plan);
        page.write("Own quotas", own);
        page.click("button", "Set");
        page.shows(&format!("Set: {name}."));
    }
    page.shows("2 tenants.");
    page.shows("exports: 50");
    page.write("Search tenants", "ac");
    page.click("button", "Search");
    page.until("document.querySelectorAll('tbody tr').length === 1");
    page.click("tbody button", "Change");
    page.write("Own quotas", "exports=2000 requests=7");
    page.click("button", "Set");
    page.shows("exports: 2,000; requests: 7");
    let quotas = json!({ "exports": { "quota": 2_000 }, "requests": { "quota": 7 } });
    let acme = rows(&node).into_iter().find(|row| row["tenant"] == "acme").unwrap();
    assert_eq!((&acme["plan"], &acme["quotas"]), (&json!("pro"), &quotas));
    page.write("Plan", "prro");
    page.click("button", "Set");
    page.shows("did you mean \"pro\"?");
    page.click("tbody button", "Remove");
    page.shows("Removed: acme.");
    assert_eq!(rows(&node).len(), 1);
    let size = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
    page.call("Emulation.setDeviceMetricsOverride", &size);
    page.go(&address(&node, "tenants?"));
    page.shows("1 tenant.");
    page.until("document.documentElement.scrollWidth === 390");
}
