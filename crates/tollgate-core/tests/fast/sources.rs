//! The sources of subjects: which of them are secret, and which values requests have for them.

use std::sync::Arc;

use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::policy::{
    Ambiguity, Attribute, ClaimReader, ClaimSource, Condition, Dimension, JsonPointer,
    LimitBinding, LimitRef, MatchMode, RequestMatch, Rule, SubjectSource, Text, UnreadBodies,
    WrittenCondition,
};
use tollgate_core::{
    Algorithm, CertificateName, Cost, Headers, KeyedHash, Limit, Millis, Policy, RequestAttributes,
};

struct Zero;

impl KeyedHash for Zero {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

/// A reader of claims without a key.
#[derive(Debug)]
struct Reader {
    is_verified: bool,
}

impl ClaimReader for Reader {
    fn claim(&self, _: &[u8], _: &[Box<str>]) -> Option<String> {
        None
    }

    fn is_verified(&self) -> bool {
        self.is_verified
    }

    fn description(&self) -> &str {
        "none"
    }

    fn fingerprint(&self) -> [u8; 16] {
        [0; 16]
    }
}

fn claim(token: SubjectSource, path: &str, is_verified: bool) -> ClaimSource {
    let (token, path) = (Box::new(token), vec![path.into()]);
    ClaimSource { token, path, reader: Arc::new(Reader { is_verified }) }
}

fn bearer() -> SubjectSource {
    SubjectSource::Credential { header: "authorization".into() }
}

fn header() -> SubjectSource {
    SubjectSource::Header { header: "x-user".into() }
}

fn query(is_secret: bool) -> SubjectSource {
    SubjectSource::Query { parameter: "key".into(), is_secret }
}

fn json(unread: UnreadBodies) -> SubjectSource {
    SubjectSource::Json { pointer: JsonPointer::parse("/model").unwrap(), unread }
}

fn expression(attribute: Attribute, is_secret: bool) -> SubjectSource {
    SubjectSource::Expression { text: Text::Of(attribute), written: "".into(), is_secret }
}

fn first_of(sources: &[SubjectSource]) -> SubjectSource {
    let named = |source: &SubjectSource| Dimension { name: "one".into(), source: source.clone() };
    SubjectSource::FirstOf { dimensions: sources.iter().map(named).collect() }
}

#[test]
fn sources_are_secret_if_their_values_can_be_credentials() {
    let cookie = SubjectSource::Cookie { cookie: "sid".into() };
    for secret in [bearer(), cookie, query(true), expression(Attribute::Method, true)] {
        assert!(secret.is_secret(), "{secret:?}");
        assert!(first_of(&[header(), secret]).is_secret());
    }
    for open in [header(), query(false), expression(Attribute::Query, false), SubjectSource::Host] {
        assert!(!open.is_secret(), "{open:?}");
        assert!(!first_of(&[header(), open]).is_secret());
    }
}

#[test]
fn a_query_is_secret_if_a_credential_is_read_from_it() {
    let parameter = || Attribute::Parameter("key".into());
    for secret in [query(true), expression(Attribute::Query, true), expression(parameter(), true)] {
        assert!(secret.is_secret_in_query(), "{secret:?}");
        assert!(first_of(&[header(), secret]).is_secret_in_query());
    }
    let joined = Text::Joined(vec![Text::Of(parameter()), Text::Of(Attribute::Method)]);
    let joined = SubjectSource::Expression { text: joined, written: "".into(), is_secret: true };
    assert!(joined.is_secret_in_query());
    let open = [bearer(), query(false), expression(parameter(), false), header()];
    for open in open.into_iter().chain([expression(Attribute::Method, true)]) {
        assert!(!open.is_secret_in_query(), "{open:?}");
        assert!(!first_of(&[header(), open]).is_secret_in_query());
    }
}

#[test]
fn only_values_in_bodies_need_bodies() {
    let (body, claim) =
        (json(UnreadBodies::Pass), |token| SubjectSource::Claim(claim(token, "sub", true)));
    assert!(body.reads_body() && first_of(&[header(), body.clone()]).reads_body());
    assert!(claim(body).reads_body());
    for other in [header(), claim(bearer()), query(true), first_of(&[header(), bearer()])] {
        assert!(!other.reads_body(), "{other:?}");
    }
}

#[test]
fn claims_differ_in_their_token_their_path_and_their_verification() {
    let one = || claim(bearer(), "sub", true);
    assert_eq!(one(), one());
    for other in
        [claim(header(), "sub", true), claim(bearer(), "org", true), claim(bearer(), "sub", false)]
    {
        assert_ne!(one(), other);
    }
}

/// A request with a value for every source.
struct Everything {
    value: &'static str,
    unread: Option<Ambiguity>,
}

impl Headers for Everything {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        let cookie = if name == "cookie" { &b"sid=abc"[..] } else { self.value.as_bytes() };
        (index == 0).then_some(cookie)
    }

    fn in_body(&self, _: &JsonPointer) -> Option<String> {
        self.unread.is_none().then(|| self.value.to_owned())
    }

    fn unread(&self) -> Option<Ambiguity> {
        self.unread
    }

    fn client_certificate(&self, _: CertificateName) -> Option<&str> {
        Some(self.value)
    }

    fn application_value(&self, _: &str) -> Option<&str> {
        Some(self.value)
    }
}

/// Returns a policy with the source as its only dimension, and one rule with `matches`.
fn policy(source: SubjectSource, matches: RequestMatch) -> Policy {
    let window = FixedWindow::new(10, Millis::from_secs(60), Anchor::Calendar).unwrap();
    let limit = Arc::new(Limit::new("each", Algorithm::FixedWindow(window)).unwrap());
    let limits = vec![LimitBinding { limit, per: vec![0] }];
    let rule = Rule::new("rule", matches, vec![LimitRef { limit: 0, cost: Cost::ONE }]);
    let dimensions = vec![Dimension { name: "who".into(), source }];
    Policy::new(dimensions, limits, vec![rule], MatchMode::FirstMatch).unwrap()
}

fn attributes(headers: &dyn Headers) -> RequestAttributes<'_> {
    RequestAttributes {
        method: "post",
        path: "/a/b",
        query: Some("key=v%20w&empty="),
        host: Some("API.example.com:443"),
        peer: Some([192, 0, 2, 7].into()),
        headers,
    }
}

fn subject(source: SubjectSource, headers: &dyn Headers) -> (String, Option<Ambiguity>) {
    let policy = policy(source, RequestMatch::default());
    let plan = policy.plan(&attributes(headers), &Zero);
    (plan.enforced[0].subject.to_string(), plan.ambiguity)
}

#[test]
fn an_empty_value_is_as_an_absent_one() {
    let certificate = SubjectSource::TlsClient { name: CertificateName::Dns };
    let application = SubjectSource::Application { name: "user".into() };
    for source in [header(), json(UnreadBodies::Pass), certificate, application] {
        for (value, expected) in [("ann", "who=ann"), ("", "who=(none)")] {
            let (subject, ambiguity) = subject(source.clone(), &Everything { value, unread: None });
            assert_eq!((&*subject, ambiguity), (expected, None), "{source:?}");
        }
    }
}

#[test]
fn a_body_that_was_not_read_is_ambiguous_if_the_policy_refuses_it() {
    let unread = Everything { value: "ann", unread: Some(Ambiguity::BodyTooLarge) };
    let read = Everything { value: "ann", unread: None };
    for (unread_bodies, ambiguity) in
        [(UnreadBodies::Pass, None), (UnreadBodies::Refuse, Some(Ambiguity::BodyTooLarge))]
    {
        assert_eq!(subject(json(unread_bodies), &unread), ("who=(none)".to_owned(), ambiguity));
        assert_eq!(subject(json(unread_bodies), &read), ("who=ann".to_owned(), None));
    }
}

#[test]
fn an_expression_reads_every_attribute_of_the_request() {
    let headers = Everything { value: "ann", unread: None };
    for (attribute, value) in [
        (Attribute::Method, "POST"),
        (Attribute::Path, "/a/b"),
        (Attribute::Query, "key=v%20w&empty="),
        (Attribute::Host, "api.example.com"),
        (Attribute::Address, "192.0.2.7"),
        (Attribute::Header("x-user".into()), "ann"),
        (Attribute::Parameter("key".into()), "v w"),
        (Attribute::Parameter("none".into()), "(none)"),
        (Attribute::Cookie("sid".into()), "abc"),
    ] {
        let (subject, _) = subject(expression(attribute.clone(), false), &headers);
        assert_eq!(subject, format!("who={value}"), "{attribute:?}");
    }
}

#[test]
fn a_condition_compares_texts() {
    let headers = Everything { value: "ann", unread: None };
    let is_met = |condition: &Condition| {
        let written = WrittenCondition { text: "".into(), condition: condition.clone() };
        let matches = RequestMatch { when: Some(Box::new(written)), ..RequestMatch::default() };
        let policy = policy(header(), matches);
        !policy.plan(&attributes(&headers), &Zero).rules.is_empty()
    };
    let text = |text: &str| Text::Literal(text.into());
    let user = || Text::Of(Attribute::Header("x-user".into()));
    let (yes, no) = (Condition::Constant(true), Condition::Constant(false));
    let has = |name: &str| Condition::Has(Attribute::Parameter(name.into()));
    let chosen = |condition: &Condition| {
        let chosen = Text::Chosen(Box::new((condition.clone(), text("x"), text("y"))));
        Condition::Equal(Text::Joined(vec![chosen, user()]), text("xann"))
    };
    let met = [
        yes.clone(),
        Condition::Not(Box::new(no.clone())),
        Condition::All(vec![]),
        Condition::All(vec![yes.clone(), yes.clone()]),
        Condition::Any(vec![no.clone(), yes.clone()]),
        Condition::Equal(user(), text("ann")),
        Condition::Equal(Text::Of(Attribute::Dimension(0)), text("ann")),
        Condition::StartsWith(user(), text("an")),
        Condition::EndsWith(user(), text("nn")),
        Condition::Contains(user(), text("n")),
        Condition::Contains(user(), text("")),
        Condition::Contains(text("more than sixteen bytes"), text("more than sixteen bytes")),
        Condition::OneOf(user(), vec![text("bob"), text("ann")]),
        Condition::IsAtLeast(user(), 3),
        has("key"),
        has("empty"),
        chosen(&yes),
    ];
    let not_met = [
        no.clone(),
        Condition::Not(Box::new(yes.clone())),
        Condition::All(vec![yes, no.clone()]),
        Condition::Any(vec![]),
        Condition::Any(vec![no.clone(), no.clone()]),
        Condition::Equal(user(), text("an")),
        Condition::StartsWith(user(), text("nn")),
        Condition::EndsWith(user(), text("an")),
        Condition::Contains(user(), text("nna")),
        Condition::Contains(user(), text("annn")),
        Condition::Contains(user(), text("a text of more than sixteen bytes")),
        Condition::OneOf(user(), vec![text("bob")]),
        Condition::OneOf(user(), vec![]),
        Condition::IsAtLeast(user(), 4),
        has("none"),
        chosen(&no),
    ];
    assert!(met.iter().all(is_met), "{:?}", met.iter().find(|it| !is_met(it)));
    assert!(!not_met.iter().any(is_met), "{:?}", not_met.iter().find(|it| is_met(it)));
}

#[test]
fn all_attributes_of_an_expression_are_visited() {
    let of = |name: &str| Text::Of(Attribute::Header(name.into()));
    let has = |name: &str| Condition::Has(Attribute::Header(name.into()));
    let condition = Condition::All(vec![
        Condition::Constant(true),
        Condition::Any(vec![has("a"), Condition::Not(Box::new(has("b")))]),
        Condition::Equal(of("c"), of("d")),
        Condition::StartsWith(of("e"), of("f")),
        Condition::EndsWith(of("g"), of("h")),
        Condition::Contains(of("i"), of("j")),
        Condition::OneOf(of("k"), vec![of("l"), Text::Literal("x".into())]),
        Condition::IsAtLeast(Text::Joined(vec![of("m"), of("n")]), 1),
        Condition::IsAtLeast(Text::Chosen(Box::new((has("o"), of("p"), of("q")))), 1),
    ]);
    let mut names = String::new();
    condition.attributes(&mut |attribute| match attribute {
        Attribute::Header(name) => names.push_str(name),
        other => panic!("{other:?}"),
    });
    assert_eq!(names, "abcdefghijklmnopq");
}
