//! Conditions on values, and conditions in `any` and `not`.

use tollgate_core::{Headers, KeyedHash, Policy, RequestAttributes};
use tollgate_policy::{explain, parse, trace};

struct NoHash;

impl KeyedHash for NoHash {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

struct Fields<'a>(&'a [(&'a str, &'a str)]);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        let mut values = self.0.iter().filter(|(field, _)| *field == name);
        values.nth(index).map(|(_, value)| value.as_bytes())
    }
}

fn policy(conditions: &str) -> Policy {
    let text = format!(
        "subjects: {{ user: {{ header: x-user }} }}\n\
         networks: {{ office: 192.0.2.0/24 }}\n\
         limits: {{ core: {{ quota: 5, window: 1h }}, other: {{ quota: 5, window: 1h, per: user }} }}\n\
         rules:\n  - {{ name: it, match: {conditions}, limits: core }}\n  \
         - {{ name: office, match: {{ network: office, has: user }}, limits: other }}\n"
    );
    parse("shop.yaml", &text).unwrap_or_else(|error| panic!("{error}")).policy
}

/// The parts of a request that the conditions in these tests depend on.
struct Sent<'a> {
    method: &'a str,
    target: &'a str,
    from: &'a str,
    fields: &'a [(&'a str, &'a str)],
}

const GET: Sent<'static> = Sent { method: "GET", target: "/", from: "192.0.2.1", fields: &[] };

impl Sent<'_> {
    fn with<T>(&self, then: impl FnOnce(&RequestAttributes<'_>) -> T) -> T {
        let (path, query) = self
            .target
            .split_once('?')
            .map_or((self.target, None), |(path, query)| (path, Some(query)));
        let (headers, peer) = (Fields(self.fields), self.from.parse().ok());
        let headers: &dyn Headers = &headers;
        then(&RequestAttributes { method: self.method, path, query, host: None, peer, headers })
    }

    fn fits(&self, policy: &Policy) -> bool {
        self.with(|attributes| policy.first_mismatch(&policy.rules()[0], attributes).is_none())
    }
}

#[test]
fn a_header_value_is_a_pattern_or_one_of_a_list() {
    let agent = |conditions: &str, value: &str| {
        let fields = &[("user-agent", value)];
        Sent { fields, ..GET }.fits(&policy(conditions))
    };
    for (conditions, value, expected) in [
        // Earlier, this pattern was accepted and compared as plain text.
        ("{ header: { user-agent: 'curl/*' } }", "curl/8.5.0", true),
        ("{ header: { user-agent: 'curl/*' } }", " curl/8.5.0 ", true),
        ("{ header: { user-agent: 'curl/*' } }", "Mozilla/5.0 curl/8", false),
        ("{ header: { user-agent: 'curl/*' } }", "Curl/8", false),
        ("{ header: { user-agent: ['curl/*', '*bot*'] } }", "a bot of ours", true),
        ("{ header: { user-agent: ['curl/*', '*bot*'] } }", "wget", false),
        ("{ header: { user-agent: [curl, wget] } }", "wget", true),
        ("{ header: { user-agent: { exact: 'curl/*' } } }", "curl/*", true),
        ("{ header: { user-agent: { exact: 'curl/*' } } }", "curl/8", false),
        ("{ header: { user-agent: { pattern: 'a?b*' } } }", "a?bc", true),
        ("{ header: { user-agent: { pattern: 'a?b*' } } }", "axbc", false),
        ("{ header: User-Agent }", "", true),
        ("{ not: { header: user-agent } }", "", false),
        ("{ not: { header: accept } }", "", true),
    ] {
        assert_eq!(agent(conditions, value), expected, "{conditions} on {value:?}");
    }
}

#[test]
fn parameters_of_the_query_are_compared_decoded() {
    let long = format!("/?q={}%2b", "a".repeat(4_000));
    for (conditions, target, expected) in [
        ("{ query: { format: [csv, pdf] } }", "/?a=b&format=pdf", true),
        ("{ query: { format: [csv, pdf] } }", "/?format=%70df", true),
        ("{ query: { format: [csv, pdf] } }", "/?f%6frmat=pdf", true),
        ("{ query: { format: [csv, pdf] } }", "/?format=pd", false),
        ("{ query: { format: [csv, pdf] } }", "/?format=html&format=csv", true),
        ("{ query: { format: [csv, pdf] } }", "/", false),
        ("{ query: { q: 'a b*' } }", "/?q=a+bc", true),
        ("{ query: { q: 'a b*' } }", "/?q=a%20b", true),
        ("{ query: { 'filter[x]': y } }", "/?filter%5Bx%5D=y", true),
        ("{ query: { q: '*a+' } }", &long, true),
        ("{ query: debug }", "/?debug", true),
        ("{ query: debug }", "/?debug=", true),
        ("{ query: debug }", "/?Debug=1", false),
        ("{ not: { query: debug } }", "/?a=1", true),
    ] {
        let fits = Sent { target, ..GET }.fits(&policy(conditions));
        assert_eq!(fits, expected, "{conditions} on {target}");
    }
}

#[test]
fn cookies_are_compared_decoded() {
    let beta = policy("{ cookie: { group: ['beta*', 'a b', a+b] } }");
    for (fields, expected) in [
        (&[("cookie", "a=1; group=beta-2")][..], true),
        (&[("cookie", "a=1"), ("cookie", "group=\"beta\"")], true),
        (&[("cookie", "group=%62eta")], true),
        (&[("cookie", "group=a%20b")], true),
        (&[("cookie", "group=a+b")], true),
        (&[("cookie", "Group=beta")], false),
        (&[("cookie", "group=alpha; x=beta")], false),
        (&[("group", "beta")], false),
    ] {
        assert_eq!(Sent { fields, ..GET }.fits(&beta), expected, "{fields:?}");
    }
}

#[test]
fn any_and_not_are_nested() {
    let nested = policy(
        "{ method: GET, any: [{ path: /export/** }, { query: { format: csv } }],
           not: [{ network: office, not: { has: user } }, { path: '/export/*/small' }] }",
    );
    let outside = Sent { from: "198.51.100.1", ..GET };
    for (sent, expected) in [
        (Sent { target: "/export/all", ..outside }, true),
        (Sent { target: "/a?format=csv", ..outside }, true),
        (Sent { target: "/a?format=pdf", ..outside }, false),
        (Sent { target: "/export/all", method: "POST", ..outside }, false),
        (Sent { target: "/export/1/small", ..outside }, false),
        (Sent { target: "/export/all", ..GET }, false),
        (Sent { target: "/export/all", fields: &[("x-user", "ann")], ..GET }, true),
        (Sent { target: "/export/all", from: "?", ..GET }, true),
    ] {
        let Sent { method, target, from, .. } = sent;
        assert_eq!(sent.fits(&nested), expected, "{method} {target} from {from}");
    }
    let folded = parse(
        "shop.yaml",
        "paths: { case: ignore }\nlimits: { core: { quota: 5, window: 1h } }\n\
         rules: [{ match: { not: { path: /Login } }, limits: core }]",
    );
    assert!(!Sent { target: "/LOGIN", ..GET }.fits(&folded.unwrap().policy));
}

/// The status of a caller includes the limits of all requests that the caller may send. These
/// requests can have other methods, paths and queries than the request for the status.
#[test]
fn the_status_of_a_caller_has_the_limits_that_it_can_meet() {
    for (conditions, expected) in [
        ("{ path: /other, query: a }", true),
        ("{ any: [{ path: /other }, { header: x-none }] }", true),
        ("{ any: [{ header: x-none }, { cookie: none }] }", false),
        ("{ not: { path: /** } }", true),
        ("{ not: { network: office } }", false),
        ("{ not: { network: office, method: POST } }", true),
        ("{ not: { any: [{ network: office }, { path: /a }] } }", false),
        ("{ not: { not: { network: office } } }", true),
        ("{ header: x-none }", false),
    ] {
        let policy = policy(conditions);
        let planned = GET.with(|attributes| policy.status_plan(attributes, &NoHash));
        let is_met = planned.iter().any(|planned| planned.limit.name() == "core");
        assert_eq!(is_met, expected, "{conditions}");
    }
}

#[test]
fn conditions_are_explained_and_traced() {
    let text = "
limits: { core: { quota: 5, window: 1h } }
rules:
  - name: one
    match: { header: { a: [b, 'c*'] }, query: d, cookie: { e: f } }
    limits: core
  - { name: two, match: { any: [{ method: PUT }, { query: { a: b } }] }, limits: core }
  - { name: three, match: { not: [{ method: PUT }, { path: '/a/*', query: a }] }, limits: core }
";
    let loaded = parse("shop.yaml", text).unwrap();
    let explanation = explain(&loaded).to_string();
    for line in [
        "  one    header a: b or c*, query d, cookie e: f → core",
        "  two    any of (PUT; query a: b) → core",
        "  three  not (PUT), not (path /a/*, query a) → core",
    ] {
        assert!(explanation.lines().any(|explanation| explanation == line), "{explanation}");
    }
    let traced = |sent: Sent<'_>| {
        sent.with(|attributes| trace(&loaded.policy, attributes, &NoHash).to_string())
    };
    let other = traced(Sent { target: "/a/b?a=1&d", ..GET });
    let expected = "\
one    no: the header a is not b or c*
two    no: the request meets none of: PUT; query a: b
three  no: the request meets: path /a/*, query a
No rule matches: the request is not limited.
";
    assert_eq!(other, expected);
    let fields: &[(&str, &str)] = &[("a", "b")];
    let traced_query = traced(Sent { fields, ..GET });
    assert!(traced_query.contains("one    no: the query parameter d is missing"), "{traced_query}");
    let traced_cookie = traced(Sent { fields, target: "/?d", ..GET });
    assert!(traced_cookie.contains("one    no: the cookie e is not f"), "{traced_cookie}");
}

/// A keyed hash for tests, which differs for all values in these tests.
struct Sum;

impl KeyedHash for Sum {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        let sum = bytes.iter().fold(7_u128, |sum, byte| sum.wrapping_mul(257) + u128::from(*byte));
        sum.to_le_bytes()
    }
}

const SUBJECTS: &str = "
subjects:
  key: { query: api_key }
  user: { query: user, keep: clear }
  session: { cookie: sid }
  tenant: { path_segment: 2 }
  address: { client_address: {} }
  client: { first_of: [key, session, user, address] }
limits:
  tenant: { quota: 5, window: 1h, per: tenant }
  client: { quota: 5, window: 1h, per: client }
rules: [{ match: { path: /t/*/** }, limits: [tenant, client] }]
";

#[test]
fn subjects_are_read_from_the_query_the_path_and_chains() {
    let loaded = parse("shop.yaml", SUBJECTS).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let policy = &loaded.policy;
    let subjects = |target: &str, fields: &[(&str, &str)]| -> String {
        let sent = Sent { target, fields, ..GET };
        let plan = sent.with(|attributes| policy.plan(attributes, &Sum));
        if let Some(ambiguity) = plan.ambiguity {
            return ambiguity.name().to_owned();
        }
        let one = plan.enforced.iter().map(|planned| planned.subject.to_string());
        one.collect::<Vec<_>>().join(" ")
    };
    let address = "tenant=acme client=address:192.0.2.1";
    assert_eq!(subjects("/t/acme/a", &[]), address);
    assert_eq!(subjects("/t//acme//a?api_key=&user", &[]), address);
    let ann = "tenant=acme client=user:ann";
    assert_eq!(subjects("/t/acme/a?user=ann", &[]), ann);
    assert_eq!(subjects("/t/%61cme/a?x&user=%61nn+", &[]), ann);
    let key = subjects("/t/acme?api_key=s3cret&user=ann", &[("cookie", "sid=s")]);
    assert!(key.starts_with("tenant=acme client=#") && !key.contains("s3cret"), "{key}");
    assert_eq!(subjects("/t/acme?api_key=%733cret", &[]), key);
    assert_eq!(subjects("/t/acme?%61pi_key=s3cret", &[]), key);
    // A session cookie with the same value as an API key identifies another client.
    assert_ne!(subjects("/t/acme", &[("cookie", "sid=s3cret")]), key);
    assert_eq!(subjects("/t/acme?api_key=a&api_key=b", &[]), "repeated");
    assert_eq!(subjects("/t/acme?api_key=%a", &[]), "malformed");
    assert_eq!(
        subjects("/t/acme?user=a&user=b", &[("cookie", "sid=s")]),
        subjects("/t/acme", &[("cookie", "sid=s")])
    );
    let long = format!("/t/acme?user={}", "a".repeat(5_000));
    assert!(subjects(&long, &[]).len() < 100);
}

#[test]
fn subjects_of_chains_are_named_as_requests_count_them() {
    let policy = parse("shop.yaml", SUBJECTS).unwrap().policy;
    let counted = |target: &str| {
        let sent = Sent { target, ..GET };
        let plan = sent.with(|attributes| policy.plan(attributes, &Sum));
        plan.enforced[1].subject.clone()
    };
    let client = policy.dimensions().iter().find(|one| &*one.name == "client").unwrap();
    let named = |value: &str| {
        client.pair(Some(value), policy.paths().case, &Sum).map_err(|error| error.to_string())
    };
    assert_eq!(named("key:s3cret").unwrap(), counted("/t/acme?api_key=s3cret"));
    assert_eq!(named("user:ann").unwrap(), counted("/t/acme?user=ann"));
    assert_eq!(named("address:192.0.2.1").unwrap(), counted("/t/acme"));
    let error =
        "the value of \"client\" is NAME:VALUE with one of the names key, session, user, address";
    for unknown in ["ann", "name:ann", "user:"] {
        assert_eq!(named(unknown).unwrap_err(), error, "{unknown}");
    }
}
