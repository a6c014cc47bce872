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

/// A request with a target, from an address.
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
        // It was accepted and compared literally.
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

/// The status of a caller is about all requests that it may send: those with another method, path
/// or query as well.
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
    let said = explain(&loaded).to_string();
    for line in [
        "  one    header a: b or c*, query d, cookie e: f → core",
        "  two    any of (PUT; query a: b) → core",
        "  three  not (PUT), not (path /a/*, query a) → core",
    ] {
        assert!(said.lines().any(|said| said == line), "{said}");
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
