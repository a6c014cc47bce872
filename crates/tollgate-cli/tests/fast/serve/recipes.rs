//! The policies of the recipes, and the shipped ones, at the proxy and at `/v1/authorize`.

use std::thread;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::listeners::{Listeners, Request, recipe};
use crate::support::node::{Folder, Node};
use crate::support::world;

/// A number of equal requests: how many of them are admitted, and how many further ones are
/// refused.
struct Row<'a> {
    request: &'a str,
    client: &'a str,
    fields: &'a [&'a str],
    admitted: usize,
    refused: usize,
}

/// Returns a row of the requests `method target`, such as `GET /a`.
const fn row<'a>(
    request: &'a str,
    client: &'a str,
    fields: &'a [&'a str],
    admitted: usize,
    refused: usize,
) -> Row<'a> {
    Row { request, client, fields, admitted, refused }
}

/// Applies the replacements `smaller` to the quotas of the policy, and sends the requests of
/// `rows`. Each replaced text must occur in the policy.
fn check(policy: &str, smaller: &[(&str, &str)], rows: &[Row<'_>]) {
    let trusts = policy.contains("trusted_proxies:");
    let proxies = if trusts { "" } else { "trusted_proxies: 127.0.0.1\n" };
    let mut policy = format!("{proxies}{policy}");
    for (quota, small) in smaller {
        assert!(policy.contains(quota), "{quota} in {policy}");
        policy = policy.replace(quota, small);
    }
    let listeners = Listeners::open(&policy, &[]);
    for Row { request, client, fields, admitted, refused } in rows {
        let (method, target) = request.split_once(' ').unwrap();
        let mut fields = fields.to_vec();
        if method == "POST" {
            fields.push("content-length: 0");
        }
        for number in 0..admitted + refused {
            let request = Request { method, target, client, fields: &fields };
            let expected = if number < *admitted { 200 } else { 429 };
            let status = listeners.status(&request);
            assert_eq!(status, expected, "{method} {target} {fields:?}, number {}", number + 1);
        }
    }
}

const A: &str = "203.0.113.5";
const B: &str = "203.0.113.6";

fn shipped(name: &str) -> String {
    std::fs::read_to_string(world::policy(name)).unwrap()
}

#[test]
fn api_keys_behind_a_load_balancer() {
    check(
        &recipe("API keys behind a load balancer"),
        &[
            ("trusted_proxies: 10.0.0.5", "trusted_proxies: 127.0.0.1"),
            ("window: 1m", "window: 1d"),
            ("quota: 10, window: 1s", "quota: 9, window: 1h"),
        ],
        &[
            row("GET /health", A, &["x-api-key: a"], 30, 0),
            row("GET /", A, &["x-api-key: a"], 3, 0),
            // 17 units are left, of which a POST costs 5.
            row("POST /", A, &["x-api-key: a"], 3, 1),
            row("GET /", A, &["x-api-key: a"], 2, 1),
            row("GET /", A, &["x-api-key: b"], 1, 1),
            row("GET /", B, &["x-api-key: b"], 9, 1),
            row("GET /health", A, &[], 1, 0),
        ],
    );
}

#[test]
fn routes_and_tenants() {
    check(
        &recipe("A quota for each route and tenant"),
        &[("quota: 600", "quota: 5"), ("quota: 100", "quota: 2")],
        &[
            row("GET /orders/1", A, &["x-tenant: acme"], 1, 0),
            row("GET /orders/2/items", A, &["x-tenant: acme"], 1, 1),
            row("GET /search", A, &["x-tenant: acme"], 2, 1),
            row("GET /", A, &["x-tenant: acme"], 1, 1),
            row("GET /search", A, &["x-tenant: other"], 2, 1),
        ],
    );
}

#[test]
fn tenants_and_their_users() {
    check(
        &recipe("A quota for each tenant"),
        &[("quota: 600", "quota: 3"), ("quota: 100", "quota: 2")],
        &[
            row("GET /", A, &["x-tenant: acme", "x-user: ann"], 2, 1),
            row("GET /", A, &["x-tenant: acme", "x-user: bob"], 1, 1),
            row("GET /", A, &["x-tenant: other", "x-user: ann"], 2, 1),
            row("GET /", A, &["x-tenant: acme"], 4, 0),
        ],
    );
}

#[test]
fn free_and_paid_plans() {
    check(
        &recipe("Free and paid plans"),
        &[
            ("{ free: 60, pro: 6_000 }, default: 30", "{ free: 6, pro: 6 }, default: 6"),
            ("{ free: 10, pro: 500 }, default: 5", "{ free: 2, pro: 3 }, default: 1"),
            ("window: 1m", "window: 1d"),
        ],
        &[
            row("GET /", A, &["x-user: ann", "x-plan: free"], 2, 1),
            row("GET /", A, &["x-user: bob", "x-plan: pro"], 3, 1),
            row("GET /", A, &["x-user: eve", "x-plan: gold"], 1, 1),
            row("GET /", A, &["x-user: joe"], 1, 1),
        ],
    );
}

#[test]
fn sign_in_by_account_and_address() {
    let account = |name: &'static str| -> &'static [&'static str] {
        match name {
            "ann" => &["x-account: ann"],
            "bob" => &["x-account: bob"],
            _ => &["x-account: eve"],
        }
    };
    check(
        &recipe("Sign-in"),
        &[("quota: 5,", "quota: 2,"), ("quota: 20,", "quota: 3,")],
        &[
            row("POST /login", A, account("ann"), 2, 1),
            row("POST /LogIn;a=b", B, account("ann"), 0, 1),
            row("POST /login", "203.0.113.7", account("bob"), 2, 0),
            row("POST /login", "203.0.113.7", account("eve"), 1, 1),
            row("GET /login", A, account("ann"), 3, 0),
        ],
    );
}

/// The test `commands::proxy::fifty_wrong_passwords_at_once_reach_the_service_five_times` tests
/// this recipe at the proxy.
#[test]
fn sign_in_by_failures_that_callers_report() {
    let folder = Folder::with(&recipe("Sign-in by failures"));
    let node = Node::open(&folder.policy());
    let post = |path: &str, body: Value| -> Value {
        let mut client = Client::connect(node.listener("http")).unwrap();
        let answer = client.exchange("POST", path, &body.to_string());
        serde_json::from_str(&answer.body).unwrap()
    };
    // Returns the receipt of an admitted attempt.
    let attempt = |account: &str| -> Option<Value> {
        let headers = json!({ "x-account": account });
        let request =
            json!({ "method": "POST", "path": "/login", "headers": headers, "client_address": A });
        let mut answer = post("/v1/check", json!({ "request": request }));
        answer["admitted"].as_bool().unwrap().then(|| answer["receipt"].take())
    };
    let report = |receipt: Value, status: u16| {
        post("/v1/refund", json!({ "receipt": receipt, "status": status }))["outcome"].take()
    };
    for _ in 0..8 {
        assert_eq!(report(attempt("bob").unwrap(), 200), "refunded");
    }
    let all: Vec<Option<Value>> = thread::scope(|scope| {
        let attempts: Vec<_> = (0..50).map(|_| scope.spawn(|| attempt("amy"))).collect();
        attempts.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut receipts: Vec<Value> = all.into_iter().flatten().collect();
    assert_eq!(receipts.len(), 5);
    // One of the five attempts was successful, so one more attempt is admitted.
    assert_eq!(report(receipts.pop().unwrap(), 200), "refunded");
    for receipt in receipts {
        assert_eq!(report(receipt, 401), "unchanged");
    }
    assert_eq!(report(attempt("amy").unwrap(), 403), "unchanged");
    assert!(attempt("amy").is_none());
    assert!(attempt("bob").is_some());
}

#[test]
fn tokens_of_a_language_model_by_plan() {
    // A request reserves 4,096 tokens. The answers report no usage, so the reservation is charged.
    let key = |name: &'static str| -> &'static [&'static str] {
        match name {
            "free" => &["authorization: Bearer a", "x-plan: free"],
            "pro" => &["authorization: Bearer b", "x-plan: pro"],
            _ => &["authorization: Bearer c"],
        }
    };
    check(
        &recipe("Tokens of a language model"),
        &[("pro: 90_000", "pro: 13_000"), ("window: 1m", "window: 1h")],
        &[
            row("POST /v1/chat/completions", A, key("free"), 2, 1),
            row("POST /v1/chat/completions", A, key("pro"), 3, 1),
            row("POST /v1/chat/completions", A, key("none"), 1, 1),
            row("GET /v1/models", A, key("free"), 4, 0),
        ],
    );
}

#[test]
fn webhooks_by_receiver() {
    check(
        &recipe("Webhooks that you send"),
        &[("quota: 50, window: 1s, burst: 100", "quota: 2, window: 1d, burst: 2")],
        &[
            row("POST /deliver", A, &["x-receiver: one.example"], 2, 1),
            row("POST /deliver", A, &["x-receiver: two.example"], 2, 1),
            row("POST /deliver", A, &[], 4, 0),
        ],
    );
}

#[test]
fn points_of_graphql() {
    check(
        &recipe("GraphQL points"),
        &[("quota: 5_000", "quota: 3")],
        &[
            row("POST /graphql", A, &["authorization: token a"], 3, 1),
            row("POST /graphql", A, &["authorization: token b"], 3, 1),
            row("GET /graphql", A, &["authorization: token a"], 1, 0),
        ],
    );
}

#[test]
fn keys_sessions_and_addresses() {
    check(
        &recipe("Keys in the query, sessions and addresses"),
        &[
            ("{ quota: 100,", "{ quota: 2,"),
            ("{ quota: 1_000,", "{ quota: 9,"),
            ("{ quota: 10_000,", "{ quota: 5,"),
        ],
        &[
            row("GET /t/acme/a?api_key=1", A, &[], 2, 1),
            row("GET /t/acme/b", A, &["cookie: session=1"], 2, 1),
            row("GET /t/acme/c", A, &[], 1, 1),
            row("GET /t/other/c", A, &[], 1, 1),
            row("GET /t/other/c", B, &[], 2, 1),
        ],
    );
}

#[test]
fn crawlers_and_exports() {
    check(
        &recipe("Crawlers and exports"),
        &[("quota: 10,", "quota: 1,"), ("quota: 5,", "quota: 2,"), ("quota: 300,", "quota: 3,")],
        &[
            row("GET /", A, &["user-agent: curl/8.5"], 1, 1),
            row("GET /robots.txt", A, &["user-agent: somebot/1"], 1, 0),
            row("GET /export/a", A, &[], 2, 1),
            row("GET /a?format=pdf", A, &[], 0, 1),
            row("GET /export/a", "192.0.2.9", &[], 3, 1),
            row("GET /", A, &[], 2, 1),
        ],
    );
}

#[test]
fn an_allowlist() {
    check(
        &recipe("An allowlist"),
        &[("quota: 100", "quota: 2")],
        &[
            row("GET /", "192.0.2.9", &[], 4, 0),
            row("GET /", "2001:db8:1::9", &[], 4, 0),
            row("GET /", "198.51.100.7", &[], 4, 0),
            row("GET /", "198.51.100.9", &[], 2, 1),
            row("GET /", A, &[], 2, 1),
        ],
    );
}

#[test]
fn the_limits_of_github() {
    check(
        &shipped("github.yaml"),
        &[
            ("core: { quota: 5_000", "core: { quota: 3"),
            ("search: { quota: 30", "search: { quota: 2"),
            ("anonymous: { quota: 60", "anonymous:  { quota: 2"),
        ],
        &[
            row("GET /search/code", A, &["authorization: token a"], 2, 1),
            row("GET /users/ann", A, &["authorization: token a"], 2, 0),
            row("POST /repos", A, &["authorization: token a"], 1, 1),
            row("GET /users/ann", A, &["authorization: token b"], 3, 1),
            row("GET /users/ann", A, &[], 2, 1),
            row("GET /users/ann", B, &[], 2, 1),
        ],
    );
}

#[test]
fn the_limiters_of_stripe() {
    check(
        &shipped("stripe.yaml"),
        &[
            ("quota: 100, window: 1s, burst: 200", "quota: 2, window: 1d, burst: 2"),
            ("anonymous: { quota: 60", "anonymous:  { quota: 2"),
        ],
        &[
            row("POST /v1/charges", A, &["authorization: Bearer a"], 2, 1),
            row("GET /v1/charges/1", A, &["authorization: Bearer b", "x-mode: test"], 2, 1),
            row("GET /v1/charges", A, &[], 2, 1),
        ],
    );
}
