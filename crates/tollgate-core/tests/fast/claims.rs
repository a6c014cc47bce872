//! Claims of tokens as the values of subjects.

use std::sync::Arc;

use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::policy::{
    ClaimReader, ClaimSource, Dimension, LimitBinding, LimitRef, MatchMode, RequestMatch, Rule,
    SubjectSource,
};
use tollgate_core::{
    Algorithm, Cost, Headers, KeyedHash, Limit, Millis, Policy, RequestAttributes,
};

struct Length;

impl KeyedHash for Length {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.len() as u8; 16]
    }
}

/// A reader that accepts tokens that start with `good-`. The rest of a token is its claim `sub`.
#[derive(Debug)]
struct Prefix {
    keys: u8,
}

impl ClaimReader for Prefix {
    fn claim(&self, token: &[u8], path: &[Box<str>]) -> Option<String> {
        let rest = std::str::from_utf8(token).ok()?.strip_prefix("good-")?;
        (path.iter().map(|name| &**name).eq(["sub"])).then(|| rest.to_owned())
    }

    fn is_verified(&self) -> bool {
        true
    }

    fn description(&self) -> &str {
        "with a good prefix"
    }

    fn fingerprint(&self) -> [u8; 16] {
        [self.keys; 16]
    }
}

fn claim(keys: u8, token: SubjectSource) -> SubjectSource {
    SubjectSource::Claim(ClaimSource {
        token: Box::new(token),
        path: vec!["sub".into()],
        reader: Arc::new(Prefix { keys }),
    })
}

fn bearer() -> SubjectSource {
    SubjectSource::Credential { header: "authorization".into() }
}

fn subjects(source: SubjectSource, fields: &[(&str, &[u8])]) -> Vec<String> {
    struct Fields<'a>(&'a [(&'a str, &'a [u8])]);
    impl Headers for Fields<'_> {
        fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
            self.0.value(name, index)
        }
    }
    let window = FixedWindow::new(10, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    let limit = Arc::new(Limit::new("each", Algorithm::FixedWindow(window)).unwrap());
    let limits = vec![LimitBinding { limit, per: vec![0] }];
    let uses = vec![LimitRef { limit: 0, cost: Cost::ONE }];
    let rules = vec![Rule::new("all", RequestMatch::default(), uses)];
    let dimensions = vec![Dimension { name: "user".into(), source }];
    let policy = Policy::new(dimensions, limits, rules, MatchMode::FirstMatch).unwrap();
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &Fields(fields),
    };
    let plan = policy.plan(&attributes, &Length);
    plan.enforced.iter().map(|charge| charge.subject.to_string()).collect()
}

#[test]
fn the_claim_of_an_accepted_token_is_the_subject() {
    let ann = ["user=ann"];
    assert_eq!(subjects(claim(1, bearer()), &[("authorization", b"Bearer good-ann")]), ann);
    let cookie = SubjectSource::Cookie { cookie: "session".into() };
    assert_eq!(subjects(claim(1, cookie), &[("cookie", b"a=b; session=good-ann")]), ann);
}

#[test]
fn a_token_that_is_not_accepted_is_as_an_absent_one() {
    let absent = subjects(claim(1, bearer()), &[]);
    assert_eq!(absent.len(), 1, "a request without a token is limited too");
    for value in [&b"Bearer bad-ann"[..], b"Bearer good-", b"Bearer \xff", b"Basic good-ann", b""] {
        assert_eq!(subjects(claim(1, bearer()), &[("authorization", value)]), absent);
    }
    let twice: &[(&str, &[u8])] =
        &[("authorization", b"Bearer good-ann"), ("authorization", b"Bearer good-bob")];
    assert!(!subjects(claim(1, bearer()), twice).iter().any(|subject| subject.contains("ann")));
}

#[test]
fn a_chain_falls_through_to_its_next_dimension() {
    let dimensions = vec![
        Dimension { name: "jwt".into(), source: claim(1, bearer()) },
        Dimension { name: "tier".into(), source: SubjectSource::Constant { value: "free".into() } },
    ];
    let chain = SubjectSource::FirstOf { dimensions };
    let of = |value: &[u8]| subjects(chain.clone(), &[("authorization", value)]);
    assert_eq!(of(b"Bearer good-ann"), ["user=jwt:ann"]);
    assert_eq!(of(b"Bearer forged"), ["user=tier:free"]);
}

#[test]
fn sources_with_other_keys_differ() {
    assert_eq!(claim(1, bearer()), claim(1, bearer()));
    assert_ne!(claim(1, bearer()), claim(2, bearer()));
}

#[test]
fn the_header_of_a_token_is_a_field_that_decides() {
    let dimensions = vec![Dimension { name: "user".into(), source: claim(1, bearer()) }];
    let policy = Policy::new(dimensions, Vec::new(), Vec::new(), MatchMode::FirstMatch).unwrap();
    assert_eq!(policy.request_fields().into_iter().collect::<Vec<_>>(), ["authorization".into()]);
}
