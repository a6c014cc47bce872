//! Conditions and subjects at the proxy and at `/v1/authorize`.

use crate::support::listeners::{Listeners, Request, recipe};

#[test]
fn clients_of_a_listed_network_are_exempt_and_the_list_is_reloaded() {
    let policy = "
trusted_proxies: 127.0.0.1
subjects: { address: { client_address: {} } }
networks: { office: [192.0.2.0/24], partners: { file: partners.txt } }
limits: { everyone: { quota: 1, window: 1h, per: address } }
rules:
  - { name: exempt, match: { network: [office, partners, \"2001:db8::1\"] }, limits: [] }
  - { name: everyone, limits: everyone }
";
    let listeners = Listeners::open(policy, &[("partners.txt", "203.0.113.0/24 # all\n")]);
    for client in ["192.0.2.7", "203.0.113.9", "2001:db8::1"] {
        let statuses = [(); 3].map(|()| listeners.get("/", client, &[]));
        assert_eq!(statuses, [200; 3], "{client}");
    }
    let others = ["198.51.100.1", "2001:db8::2"];
    for client in others {
        let statuses = [(); 3].map(|()| listeners.get("/", client, &[]));
        assert_eq!(statuses, [200, 429, 429], "{client}");
    }
    listeners.folder.write("partners.txt", "203.0.113.0/24\n198.51.100.1\n");
    listeners.proxy.wait_for_log("the policy was reloaded");
    listeners.node.wait_for_log("the policy was reloaded");
    assert_eq!(others.map(|client| listeners.get("/", client, &[])), [200, 429]);
    // A list with a mistake changes nothing, and its place is logged.
    listeners.folder.write("partners.txt", "203.0.113.0/24\n198.51.100.0/99\n");
    listeners.node.wait_for_log("partners.txt:2:1: \"198.51.100.0/99\" is not a network");
    assert_eq!(others.map(|client| listeners.get("/", client, &[])), [200, 429]);
}

#[test]
fn conditions_are_the_same_at_the_proxy_and_for_sub_requests() {
    let policy = "
trusted_proxies: 127.0.0.1
subjects: { address: { client_address: {} } }
limits: { exports: { quota: 1, window: 1h, per: address } }
rules:
  - name: exports
    match:
      method: GET
      any: [{ path: /export/** }, { query: { format: [csv, 'pdf*'] } }]
      not: [{ network: 192.0.2.0/24 }, { header: { user-agent: 'probe/*' } }, { cookie: internal }]
    limits: exports
";
    let listeners = Listeners::open(policy, &[]);
    let agent = &["user-agent: probe/1"][..];
    for (client, target, fields, expected) in [
        ("198.51.100.1", "/export/all", &[][..], 429),
        ("198.51.100.2", "/a?x=1&format=%63sv", &[], 429),
        ("198.51.100.3", "/a?format=pdf+large", &[], 429),
        ("198.51.100.4", "/a?format=html", &[], 200),
        ("198.51.100.5", "/export/all", agent, 200),
        ("198.51.100.6", "/export/all", &["cookie: a=b; internal=1"], 200),
        ("192.0.2.7", "/export/all", &[], 200),
    ] {
        assert_eq!(listeners.get(target, client, fields), 200, "{target} from {client}");
        assert_eq!(listeners.get(target, client, fields), expected, "{target} from {client}");
    }
}

#[test]
fn a_sign_in_is_counted_by_the_cookie_of_the_session() {
    let policy = "
trusted_proxies: 127.0.0.1
subjects:
  session: { cookie: sid }
  address: { client_address: {} }
  client:  { first_of: [session, address] }
limits: { sign-in: { quota: 2, window: 1h, per: client } }
rules: [{ match: { method: POST, path: /login }, limits: sign-in }]
";
    let listeners = Listeners::open(policy, &[]);
    let sign_in = |client, fields: &[&str]| {
        listeners.status(&Request { method: "POST", target: "/login", client, fields })
    };
    let one = &["content-length: 0", "cookie: a=b; sid=one"][..];
    let same = &["content-length: 0", "cookie: sid=%6fne"][..];
    let other = &["content-length: 0", "cookie: sid=other"][..];
    let none = &["content-length: 0"][..];
    assert_eq!(sign_in("192.0.2.1", one), 200);
    assert_eq!(sign_in("192.0.2.2", same), 200);
    assert_eq!(sign_in("192.0.2.3", one), 429);
    assert_eq!(sign_in("192.0.2.1", other), 200);
    assert_eq!([(); 3].map(|()| sign_in("192.0.2.1", none)), [200, 200, 429]);
    assert_eq!(sign_in("192.0.2.2", none), 200);
    let twice = &["content-length: 0", "cookie: sid=one; sid=two"][..];
    assert_eq!(sign_in("192.0.2.4", twice), 400);
}

#[test]
fn a_key_in_the_query_has_a_quota() {
    let policy = "
trusted_proxies: 127.0.0.1
subjects: { key: { query: api_key }, tenant: { path_segment: 2 } }
limits:
  key:    { quota: 2, window: 1h, per: key }
  tenant: { quota: 3, window: 1h, per: tenant }
rules: [{ match: { path: /v1/*/**, has: key }, limits: [key, tenant] }]
";
    let listeners = Listeners::open(policy, &[]);
    let get = |target: &str| listeners.get(target, "192.0.2.1", &[]);
    assert_eq!(get("/v1/acme?api_key=a"), 200);
    assert_eq!(get("/v1/acme/items?x=1&api_key=%61"), 200);
    assert_eq!(get("/v1/acme?api_key=a"), 429);
    assert_eq!(get("/v1/acme?api_key=b"), 200);
    assert_eq!(get("/v1/acme?api_key=b"), 429);
    assert_eq!(get("/v1/other?api_key=b"), 200);
    assert_eq!(get("/v1/acme"), 200);
    assert_eq!(get("/v1/acme?api_key=a&api_key=b"), 400);
}

#[test]
fn expressions_are_conditions_and_subjects() {
    let policy = recipe("Conditions in CEL");
    assert!(policy.contains("{ quota: 10,") && policy.contains("{ quota: 1_000,"), "{policy}");
    let policy =
        policy.replace("{ quota: 10,", "{ quota: 2,").replace("{ quota: 1_000,", "{ quota: 5,");
    let listeners = Listeners::open(&format!("trusted_proxies: 127.0.0.1\n{policy}"), &[]);
    let large = format!("/search?q={}", "a".repeat(220));
    let named = &["user-agent: shop/3"][..];
    let get = |target: &str, fields: &[&str]| listeners.get(target, "192.0.2.1", fields);
    assert_eq!([(); 3].map(|()| get(&large, named)), [200, 200, 429]);
    assert_eq!(get("/search?q=a&format=csv", named), 429, "an export is a costly search");
    assert_eq!(listeners.get(&large, "192.0.2.2", named), 200, "another address");
    // A short search meets the rule for all others.
    assert_eq!(get("/search?q=a", named), 200);
    assert_eq!(get("/items", named), 200);
    assert_eq!(get("/items", named), 429, "the hosts without a name of their own share a quota");
    assert_eq!(get("/search?q=a", &["user-agent: a", "user-agent: shop/3"]), 400);
}
