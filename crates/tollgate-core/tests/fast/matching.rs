//! The rules that a request matches, and the charges of the request.
#![allow(missing_docs)]

use std::sync::Arc;

use tollgate_core::algo::fixed_window::{Anchor, FixedWindow};
use tollgate_core::policy::{
    Ambiguity, Dimension, LimitBinding, LimitRef, MatchMode, PathPattern, RequestMatch, Rule,
    RuleSwitch, SubjectSource, ValueMatch, ValuePattern,
};
use tollgate_core::{
    Algorithm, Cost, KeyedHash, Limit, Millis, Policy, RequestAttributes, Subject, Value,
};

struct Length;

impl KeyedHash for Length {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.len() as u8; 16]
    }
}

type Fields = [(&'static str, &'static [u8])];

/// Returns a policy with two dimensions. Dimension 0 is the header `x-user`, and dimension 1 is the
/// route.
fn policy(order: MatchMode, rules: Vec<Rule>) -> Policy {
    let dimension = |name: &str, source| Dimension { name: name.into(), source };
    let dimensions = vec![
        dimension("user", SubjectSource::Header { header: "x-user".into() }),
        dimension("route", SubjectSource::Route),
    ];
    let limit = |name, per: &[usize]| {
        let window = FixedWindow::new(10, Millis::new(1_000), Anchor::default()).unwrap();
        let limit = Limit::new(name, Algorithm::FixedWindow(window)).unwrap();
        LimitBinding { limit: Arc::new(limit), per: per.to_vec() }
    };
    let limits = vec![limit("all", &[]), limit("user", &[0]), limit("route", &[0, 1])];
    Policy::new(dimensions, limits, rules, order).unwrap()
}

fn rule(name: &str, matches: RequestMatch, limits: &[(usize, u64)]) -> Rule {
    let limits = limits
        .iter()
        .map(|(limit, cost)| LimitRef { limit: *limit, cost: Cost::new(*cost).unwrap() })
        .collect();
    Rule::new(name, matches, limits)
}

/// Returns the names of the matching rules, followed by the charges. Each charge is written as
/// `limit:cost@subject`.
fn plan(policy: &Policy, method: &str, host: &str, path: &str, fields: &'static Fields) -> String {
    struct Headers(&'static Fields);
    impl tollgate_core::Headers for Headers {
        fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
            self.0.value(name, index)
        }
    }
    let headers = Headers(fields);
    let attributes = RequestAttributes {
        method,
        path,
        query: None,
        host: Some(host),
        peer: None,
        headers: &headers,
    };
    let plan = policy.plan(&attributes, &Length);
    let rules: Vec<_> = plan.rules.iter().map(|rule| rule.name.to_string()).collect();
    let charges = plan
        .enforced
        .iter()
        .map(|charge| format!("{}:{}@{}", charge.limit.name(), charge.cost.get(), charge.subject));
    format!("{} -> {}", rules.join(","), charges.collect::<Vec<_>>().join("; "))
}

fn path(pattern: &str) -> RequestMatch {
    RequestMatch { paths: vec![PathPattern::parse(pattern).unwrap()], ..RequestMatch::default() }
}

const ANN: &Fields = &[("x-user", b"ann")];

#[test]
fn the_first_rule_decides_alone() {
    let rules = vec![
        rule("search", path("/search/**"), &[(1, 3)]),
        rule("rest", RequestMatch::default(), &[(0, 1)]),
    ];
    let policy = policy(MatchMode::FirstMatch, rules);
    assert_eq!(plan(&policy, "GET", "h", "/search/x", ANN), "search -> user:3@user=ann");
    assert_eq!(plan(&policy, "GET", "h", "/other", ANN), "rest -> all:1@everybody");
}

#[test]
fn all_rules_that_match_are_one_charge() {
    let rules = vec![
        rule("a", path("/x/**"), &[(1, 1), (0, 1)]),
        rule("b", RequestMatch::default(), &[(1, 2), (2, 1)]),
        rule("c", path("/y"), &[(0, 5)]),
    ];
    let policy = policy(MatchMode::AllMatches, rules);
    assert_eq!(
        plan(&policy, "GET", "h", "/x/1", ANN),
        "a,b -> user:3@user=ann; all:1@everybody; route:1@user=ann, route=b"
    );
}

#[test]
fn one_limit_for_two_subjects_is_two_charges() {
    let rules = vec![
        rule("a", path("/x/{id}"), &[(2, 1)]),
        rule("b", path("/x/*"), &[(2, 1)]),
        rule("c", path("/x/{id}"), &[(2, 1)]),
    ];
    let policy = policy(MatchMode::AllMatches, rules);
    assert_eq!(
        plan(&policy, "GET", "h", "/x/1", ANN),
        "a,b,c -> route:2@user=ann, route=/x/{id}; route:1@user=ann, route=/x/*"
    );
}

#[test]
fn who_leaves_a_header_out_shares_a_counter() {
    let policy = policy(MatchMode::FirstMatch, vec![rule("a", RequestMatch::default(), &[(1, 1)])]);
    assert_eq!(plan(&policy, "GET", "h", "/", &[]), "a -> user:1@user=(none)");
    assert_eq!(plan(&policy, "GET", "h", "/", &[("x-user", b" ")]), "a -> user:1@user=(none)");
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let absent = policy.plan(&attributes, &Length).enforced[0].subject.clone();
    let shown = Subject::new([("user", Value::Clear(b"(none)"))], &Length);
    assert_ne!(absent, shown, "what looks like none is not none");
}

#[test]
fn has_and_lacks() {
    let has = RequestMatch { has: vec![0], ..RequestMatch::default() };
    let lacks = RequestMatch { lacks: vec![0], ..RequestMatch::default() };
    let rules = vec![rule("known", has, &[(1, 1)]), rule("stranger", lacks, &[(0, 1)])];
    let policy = policy(MatchMode::FirstMatch, rules);
    assert_eq!(plan(&policy, "GET", "h", "/", ANN), "known -> user:1@user=ann");
    assert_eq!(plan(&policy, "GET", "h", "/", &[]), "stranger -> all:1@everybody");
    assert_eq!(plan(&policy, "GET", "h", "/", &[("x-user", b"")]), "stranger -> all:1@everybody");
}

#[test]
fn hosts() {
    let matches = RequestMatch {
        hosts: vec!["api.example.com".into(), "*.example.org".into(), "[::1]".into()],
        ..RequestMatch::default()
    };
    let policy = policy(MatchMode::FirstMatch, vec![rule("r", matches, &[(0, 1)])]);
    for (host, expected) in [
        ("api.example.com", true),
        ("API.Example.COM", true),
        ("api.example.com:443", true),
        ("api.example.com.", true),
        ("api.example.com.:80", true),
        ("xapi.example.com", false),
        ("api.example.com.evil", false),
        ("www.example.org", true),
        ("a.b.example.org:8080", true),
        ("example.org", false),
        (".example.org", false),
        ("evilexample.org", false),
        ("[::1]", true),
        ("[::1]:80", true),
        ("::1", false),
        ("", false),
    ] {
        let met = plan(&policy, "GET", host, "/", &[]).starts_with('r');
        assert_eq!(met, expected, "{host:?}");
    }
}

#[test]
fn methods_and_headers() {
    let header = |value: Option<&str>| ValueMatch {
        name: "x-kind".into(),
        values: value.map(|value| ValuePattern::Exact(value.into())).into_iter().collect(),
    };
    let methods = vec!["POST".into(), "PUT".into()];
    let any = RequestMatch { methods, headers: vec![header(None)], ..RequestMatch::default() };
    let bot = RequestMatch { headers: vec![header(Some("bot"))], ..RequestMatch::default() };
    let rules = vec![rule("any", any, &[(0, 1)]), rule("bot", bot, &[(0, 1)])];
    let policy = policy(MatchMode::FirstMatch, rules);
    let cases: [(&str, &'static Fields, &str); 9] = [
        ("POST", &[("x-kind", b"man")], "any"),
        ("PUT", &[("x-kind", b"")], "any"),
        ("post", &[("x-kind", b"man")], "any"),
        ("pUt", &[("x-kind", b"man")], "any"),
        ("GET", &[("x-kind", b"man")], ""),
        ("GET", &[("x-kind", b" bot\t")], "bot"),
        ("GET", &[("x-kind", b"man"), ("x-kind", b"bot")], "bot"),
        ("GET", &[("x-kind", b"Bot")], ""),
        ("GET", &[], ""),
    ];
    for (method, fields, expected) in cases {
        let plan = plan(&policy, method, "h", "/", fields);
        let (rules, _) = plan.split_once(" -> ").unwrap();
        assert_eq!(rules, expected, "{method} {fields:?}");
    }
}

#[test]
fn what_points_nowhere_is_no_policy() {
    let whole = |rules| Policy::new(vec![], vec![], rules, MatchMode::FirstMatch).is_some();
    assert!(whole(vec![rule("a", RequestMatch::default(), &[])]));
    assert!(!whole(vec![rule("a", RequestMatch::default(), &[(0, 1)])]));
    assert!(!whole(vec![rule("a", RequestMatch { has: vec![0], ..RequestMatch::default() }, &[])]));
    assert!(!whole(vec![rule(
        "a",
        RequestMatch { lacks: vec![0], ..RequestMatch::default() },
        &[]
    )]));
}

#[test]
fn how_a_caller_stands_is_informed_of_rules_that_refuse() {
    let rules = vec![
        rule("first", RequestMatch::default(), &[(0, 1)]),
        rule("second", path("/x"), &[(1, 2)]),
    ];
    let policy = policy(MatchMode::FirstMatch, rules);
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let rules = |switch: RuleSwitch| {
        let of = |rule: &Rule| if &*rule.name == "first" { switch } else { RuleSwitch::On };
        let planned = policy.status_plan_switched(&attributes, &Length, of);
        planned.iter().map(|planned| planned.limit.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rules(RuleSwitch::On), ["all", "user"]);
    for switch in [RuleSwitch::Counted, RuleSwitch::Off] {
        assert_eq!(rules(switch), ["user"], "{switch:?}");
    }
}

/// Returns a policy in which `source` is the source of the only subject.
fn policy_per(source: SubjectSource) -> Policy {
    let window = FixedWindow::new(10, Millis::new(1_000), Anchor::default()).unwrap();
    let limit = Limit::new("one", Algorithm::FixedWindow(window)).unwrap();
    let limits = vec![LimitBinding { limit: Arc::new(limit), per: vec![0] }];
    let dimensions = vec![Dimension { name: "who".into(), source }];
    let known = RequestMatch { has: vec![0], ..RequestMatch::default() };
    let rules =
        vec![rule("known", known, &[(0, 1)]), rule("stranger", RequestMatch::default(), &[(0, 1)])];
    Policy::new(dimensions, limits, rules, MatchMode::FirstMatch).unwrap()
}

/// Returns the matching rule, the subject and the ambiguity of a request with these header fields.
fn read(policy: &Policy, method: &str, fields: &Fields) -> (String, String, Option<Ambiguity>) {
    struct Headers<'a>(&'a Fields);
    impl tollgate_core::Headers for Headers<'_> {
        fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
            self.0.value(name, index)
        }
    }
    let attributes = RequestAttributes {
        method,
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &Headers(fields),
    };
    let plan = policy.plan(&attributes, &Length);
    let subject = plan.enforced[0].subject.to_string();
    (plan.rules[0].name.to_string(), subject, plan.ambiguity)
}

#[test]
fn a_field_that_occurs_twice_is_ambiguous_and_counts_as_none() {
    let credential = policy_per(SubjectSource::Credential { header: "authorization".into() });
    let header = policy_per(SubjectSource::Header { header: "x-user".into() });
    let cookie = policy_per(SubjectSource::Cookie { cookie: "sid".into() });
    let twice = |name: &'static str, value: &'static [u8]| [(name, value), (name, value)];
    for (policy, fields) in [
        (&credential, twice("authorization", b"Bearer a")),
        (&header, twice("x-user", b"ann")),
        (&cookie, twice("cookie", b"sid=a")),
        (&cookie, [("cookie", b"a=b"), ("cookie", b"sid=decoy; sid=real")]),
    ] {
        let none = ("stranger".to_owned(), "who=(none)".to_owned(), Some(Ambiguity::Repeated));
        assert_eq!(read(policy, "GET", &fields), none, "{fields:?}");
    }
    // Fields that no subject uses may occur twice.
    assert_eq!(read(&header, "GET", &twice("accept", b"a")).2, None);
    // HTTP/2 may split the cookie field.
    let crumbs: &Fields = &[("cookie", b"a=b"), ("cookie", b"sid=real")];
    assert_eq!(read(&cookie, "GET", crumbs).2, None);
    let whole = policy_per(SubjectSource::Header { header: "cookie".into() });
    assert_eq!(read(&whole, "GET", crumbs).1, "who=a=b; sid=real");
}

#[test]
fn one_credential_is_one_counter_whatever_stands_after_its_scheme() {
    let policy = policy_per(SubjectSource::Credential { header: "authorization".into() });
    let mut seen = std::collections::BTreeSet::new();
    for count in 1..100 {
        for (scheme, space) in
            [("Bearer", "\t"), ("bEARER", " "), ("token", "\t "), ("TOKEN", " \t")]
        {
            let value = format!("{scheme}{}SECRET", space.repeat(count));
            let value: &'static [u8] = value.leak().as_bytes();
            seen.insert(format!("{:?}", read(&policy, "GET", &[("authorization", value)])));
        }
        let many: &'static [u8] = format!("Bearer\tx{count} SECRET").leak().as_bytes();
        let (rule, _, ambiguity) = read(&policy, "GET", &[("authorization", many)]);
        assert_eq!((&*rule, ambiguity), ("stranger", Some(Ambiguity::Malformed)));
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[test]
fn methods_are_one_whatever_their_case() {
    let policy = policy_per(SubjectSource::Method);
    for method in ["POST", "post", "pOsT"] {
        assert_eq!(read(&policy, method, &[]).1, "who=POST");
    }
}

#[test]
fn a_shadow_rule_never_makes_a_request_ambiguous() {
    let mut rules = vec![rule("known", RequestMatch::default(), &[(1, 1)])];
    rules[0].mode = tollgate_core::policy::RuleMode::Shadow;
    let shadowed = policy(MatchMode::AllMatches, rules.clone());
    rules[0].mode = tollgate_core::policy::RuleMode::Enforce;
    let enforced = policy(MatchMode::AllMatches, rules);
    let twice: &Fields = &[("x-user", b"ann"), ("x-user", b"bob")];
    struct Headers<'a>(&'a Fields);
    impl tollgate_core::Headers for Headers<'_> {
        fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
            self.0.value(name, index)
        }
    }
    let headers = &Headers(twice);
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers,
    };
    assert_eq!(enforced.plan(&attributes, &Length).ambiguity, Some(Ambiguity::Repeated));
    assert_eq!(shadowed.plan(&attributes, &Length).ambiguity, None);
    let switched = enforced.plan_switched(&attributes, &Length, |_| RuleSwitch::Counted);
    assert_eq!(switched.ambiguity, None);
}
