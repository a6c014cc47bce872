//! Charges by name use the same counters as requests with the same values.

use std::net::IpAddr;
use std::sync::Arc;

use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, NameError, Named, OnFailure, PathCase,
    PathOptions, PathPattern, Policy, RequestMatch, Rule, SubjectSource,
};
use tollgate_core::{
    Algorithm, Cost, Headers, KeyedHash, Limit, Millis, RequestAttributes, Subject, Value,
};

/// A hash for tests. It hides nothing, but shows which values were hashed.
struct Sum;

impl KeyedHash for Sum {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        bytes.iter().fold(1_u128, |sum, byte| sum * 31 + u128::from(*byte)).to_be_bytes()
    }
}

fn policy() -> Policy {
    policy_of(OnFailure::Local, OnFailure::Deny)
}

/// Returns a policy with two rules. The rule `easy` uses both limits, and the rule `strict` uses
/// only the limit `all`. Each rule has its own fallback.
fn policy_of(easy: OnFailure, strict: OnFailure) -> Policy {
    let sources = [
        ("token", SubjectSource::Credential { header: "authorization".into() }),
        ("client", SubjectSource::Header { header: "x-client".into() }),
        ("address", SubjectSource::ClientAddress { ipv4_prefix: 24, ipv6_prefix: 64 }),
        ("host", SubjectSource::Host),
        ("tier", SubjectSource::Constant { value: "free".into() }),
        ("session", SubjectSource::Cookie { cookie: "sid".into() }),
        ("method", SubjectSource::Method),
    ];
    let dimensions: Vec<_> =
        sources.map(|(name, source)| Dimension { name: name.into(), source }).into();
    let window = FixedWindow::new(10, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    let limit = |name: &str| Arc::new(Limit::new(name, Algorithm::FixedWindow(window)).unwrap());
    let limits = vec![
        LimitBinding { limit: limit("each"), per: (0..dimensions.len()).collect() },
        LimitBinding { limit: limit("all"), per: vec![] },
    ];
    let uses = [LimitRef { limit: 0, cost: Cost::ONE }, LimitRef { limit: 1, cost: Cost::ONE }];
    let easy =
        Rule { on_failure: easy, ..Rule::new("easy", RequestMatch::default(), uses.to_vec()) };
    let strict = Rule { on_failure: strict, ..easy.clone() };
    let strict = Rule { name: "strict".into(), limits: vec![uses[1]], ..strict };
    Policy::new(dimensions, limits, vec![easy, strict], MatchMode::FirstMatch).unwrap()
}

const WHOLE: [(&str, Option<&str>); 6] = [
    ("session", Some("s1")),
    ("token", Some("Bearer abc")),
    ("client", Some(" web ")),
    ("address", Some("::ffff:192.0.2.7")),
    ("host", Some("API.example.com:443")),
    ("method", Some("GET")),
];

fn named<'a>(limit: &'a str, subject: &'a [(&'a str, Option<&'a str>)]) -> Named<'a> {
    Named { limit, cost: Cost::ONE, subject }
}

fn error(limit: &str, subject: &[(&str, Option<&str>)]) -> NameError {
    policy().plan_named([named("all", &[]), named(limit, subject)], &Sum).unwrap_err().1
}

#[test]
fn a_name_and_a_request_meet_in_one_counter() {
    let headers: &[(&str, &[u8])] =
        &[("authorization", b"token abc"), ("x-client", b"web"), ("cookie", b"a=b; sid=s1")];
    struct Listed<'a>(&'a [(&'a str, &'a [u8])]);
    impl Headers for Listed<'_> {
        fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
            self.0.value(name, index)
        }
    }
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: Some("api.example.com."),
        peer: Some(IpAddr::from([192, 0, 2, 99])),
        headers: &Listed(headers),
    };
    let policy = policy();
    let by_request = policy.plan(&attributes, &Sum).enforced;
    let by_name = policy.plan_named([named("each", &WHOLE), named("all", &[])], &Sum).unwrap();
    assert_eq!(by_name.planned, by_request);
}

/// A regression test: values from paths were not compared without case if they were given by name.
#[test]
fn a_value_from_a_path_is_named_in_any_case_if_the_case_of_paths_is_ignored() {
    let sources = [
        ("first", SubjectSource::PathSegment { number: 1 }),
        ("id", SubjectSource::PathParameter { parameter: "id".into() }),
    ];
    let dimension = |(name, source): (&str, _)| Dimension { name: name.into(), source };
    let [first, id] = sources.map(dimension);
    let source = SubjectSource::FirstOf { dimensions: vec![id.clone()] };
    let chain = dimension(("chain", source));
    let window = FixedWindow::new(10, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    let limit = Arc::new(Limit::new("each", Algorithm::FixedWindow(window)).unwrap());
    let limits = vec![LimitBinding { limit, per: vec![0, 1, 2] }];
    let pattern = PathPattern::parse("/*/{id}").unwrap();
    let matches = RequestMatch { paths: vec![pattern], ..RequestMatch::default() };
    let rule = Rule::new("rule", matches, vec![LimitRef { limit: 0, cost: Cost::ONE }]);
    let exact =
        Policy::new(vec![first, id, chain], limits, vec![rule], MatchMode::FirstMatch).unwrap();
    let ignore = PathOptions { case: PathCase::Ignore, ..PathOptions::default() };
    let attributes = RequestAttributes {
        method: "GET",
        path: "/Shops/%C3%84cme",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let subject =
        [("first", Some("Shops")), ("id", Some("\u{c4}cme")), ("chain", Some("id:\u{c4}cme"))];
    for policy in [exact.clone(), exact.with_paths(ignore)] {
        let by_request = policy.plan(&attributes, &Sum).enforced;
        let by_name = policy.plan_named([named("each", &subject)], &Sum).unwrap();
        assert_eq!(by_name.planned, by_request);
        let case = policy.paths().case;
        let pairs = policy.dimensions().iter().zip(&subject);
        let pairs = pairs.map(|(one, (_, value))| one.pair(*value, case, &Sum).unwrap());
        let encoding: Vec<u8> = pairs.flat_map(|pair| pair.as_bytes().to_vec()).collect();
        assert_eq!(Subject::from_bytes(&encoding), Some(by_request[0].subject.clone()));
    }
}

/// A regression test: a quota for a value that no request has was accepted.
#[test]
fn a_value_without_a_name_has_the_form_of_one_of_the_dimensions() {
    let dimension = |name: &str, source| Dimension { name: name.into(), source };
    let path = dimension("path", SubjectSource::PathSegment { number: 1 });
    let method = dimension("method", SubjectSource::Method);
    let address = SubjectSource::ClientAddress { ipv4_prefix: 24, ipv6_prefix: 64 };
    let address = dimension("address", address);
    let both = SubjectSource::FirstOf { dimensions: vec![path.clone(), method.clone()] };
    let both = dimension("both", both);
    for (dimension, value, expected) in [
        (&path, "Acme", "acme"),
        (&method, "get", "GET"),
        (&both, "Acme", "acme"),
        (&both, "acme", "acme"),
        (&both, "GET", "GET"),
        (&address, "192.0.2.7", "192.0.2.0/24"),
        (&address, "192.0.2.0/24", "192.0.2.0/24"),
    ] {
        let name = &dimension.name;
        let form = dimension.value_in_requests(value, PathCase::Ignore);
        assert_eq!(form, expected, "{value} of {name}");
    }
    assert_eq!(path.value_in_requests("Acme", PathCase::Exact), "Acme");
}

#[test]
fn who_has_none_is_counted_with_all_who_have_none() {
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let nobody = ["session", "token", "client", "address", "host"].map(|name| (name, None));
    let subject: Vec<_> = nobody.into_iter().chain([("method", Some("GET"))]).collect();
    let policy = policy();
    let by_name = policy.plan_named([named("each", &subject)], &Sum).unwrap();
    assert_eq!(by_name.planned[0], policy.plan(&attributes, &Sum).enforced[0]);
}

#[test]
fn the_same_limit_and_subject_twice_cost_both() {
    let twice = [named("all", &[]), named("all", &[])];
    let plan = policy().plan_named(twice, &Sum).unwrap();
    assert_eq!(plan.planned.len(), 1);
    assert_eq!(plan.planned[0].cost.get(), 2);
}

#[test]
fn the_strictest_rule_says_what_happens_without_the_store() {
    let on_failure = |charge: Named<'_>| policy().plan_named([charge], &Sum).unwrap().on_failure;
    assert_eq!(on_failure(named("each", &WHOLE)), OnFailure::Local);
    assert_eq!(on_failure(named("all", &[])), OnFailure::Deny);
}

/// A regression test: `on_failure: allow` was ignored for limits that are charged by name.
#[test]
fn on_failure_allow_holds_for_limits_charged_by_name() {
    let open = policy_of(OnFailure::Allow, OnFailure::Allow);
    let mixed = policy_of(OnFailure::Allow, OnFailure::Deny);
    let of = |policy: &Policy, charges: &[Named<'_>]| {
        policy.plan_named(charges.iter().copied(), &Sum).unwrap().on_failure
    };
    let (each, all) = (named("each", &WHOLE), named("all", &[]));
    assert_eq!(of(&open, &[each]), OnFailure::Allow);
    assert_eq!(of(&open, &[each, all]), OnFailure::Allow);
    assert_eq!(of(&mixed, &[each]), OnFailure::Allow);
    assert_eq!(of(&mixed, &[each, all]), OnFailure::Deny, "the strictest rule decides");
    assert_eq!(of(&open, &[]), OnFailure::Local);
}

#[test]
fn what_means_nothing_is_reported() {
    assert_eq!(error("core", &[]), NameError::Limit("core".into()));
    assert_eq!(error("all", &[("token", None)]), NameError::Dimension("token".into()));
    assert_eq!(error("each", &WHOLE[..5]), NameError::Missing("method".into()));
    let with = |name: &str, value: &'static str| {
        let mut subject: Vec<_> = WHOLE.iter().copied().filter(|pair| pair.0 != name).collect();
        let name = name.to_owned();
        subject.push((&name, Some(value)));
        error("each", &subject)
    };
    assert_eq!(with("token", " "), NameError::Empty("token".into()));
    assert_eq!(with("address", "192.0.2"), NameError::Address("address".into()));
    assert_eq!(with("tier", "paid"), NameError::Constant("tier".into(), "free".into()));
}

#[test]
fn a_constant_can_be_given_or_omitted() {
    let omitted = policy().plan_named([named("each", &WHOLE)], &Sum).unwrap().planned;
    let given: Vec<_> = WHOLE.iter().copied().chain([("tier", Some("free"))]).collect();
    let given = policy().plan_named([named("each", &given)], &Sum).unwrap().planned;
    assert_eq!(given, omitted);
}

#[test]
fn the_first_of_several_dimensions_is_named_with_its_value() {
    let dimensions = vec![
        Dimension {
            name: "key".into(),
            source: SubjectSource::Credential { header: "x-key".into() },
        },
        Dimension { name: "method".into(), source: SubjectSource::Method },
    ];
    let source = SubjectSource::FirstOf { dimensions };
    let chain = Dimension { name: "client".into(), source };
    let pair = |value| chain.pair(value, PathCase::Exact, &Sum);
    let text = |value| pair(Some(value)).unwrap().to_string();
    assert_eq!(text("method:get"), "client=method:GET");
    let hash = Sum.hash(b"key:abc");
    let hashed = Subject::new([("client", Value::Hashed(hash))], &Sum);
    assert_eq!(pair(Some("key:abc")), Ok(hashed));
    assert_eq!(pair(None), Ok(Subject::new([("client", Value::Absent)], &Sum)));
    for value in ["abc", "other:abc", "method:", ":get", ""] {
        let error = NameError::FirstOf("client".into(), "key, method".into());
        assert_eq!(pair(Some(value)), Err(error), "{value}");
    }
}
