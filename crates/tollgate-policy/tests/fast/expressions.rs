//! Expressions as conditions and as subjects. If a request has all attributes, the interpreter of
//! the crate `cel` must give the same result as the compiled expression.

use cel::{Context, Program, Value};
use std::collections::HashMap;
use tollgate_core::{Headers, KeyedHash, Policy, RequestAttributes};
use tollgate_policy::{explain, parse, trace};

struct Hash;

impl KeyedHash for Hash {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.len() as u8; 16]
    }
}

#[derive(Clone, Copy)]
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    host: Option<&'a str>,
    fields: &'a [(&'a str, &'a [u8])],
}

struct Fields<'a>(&'a [(&'a str, &'a [u8])]);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.iter().filter(|(field, _)| *field == name).nth(index).map(|(_, value)| *value)
    }
}

const POST: Request<'_> = Request {
    method: "POST",
    path: "/v1/search",
    query: Some("q=rust&format=csv&page=2"),
    host: Some("api.example.com"),
    fields: &[("user-agent", b"curl/8.5"), ("x-plan", b"pro"), ("cookie", b"theme=dark; id=7")],
};

const BARE: Request<'_> =
    Request { method: "GET", path: "/", query: None, host: None, fields: &[] };

fn plan<T>(
    policy: &Policy,
    request: Request<'_>,
    read: impl FnOnce(&[String], &[String]) -> T,
) -> T {
    let attributes = RequestAttributes {
        method: request.method,
        path: request.path,
        query: request.query,
        host: request.host,
        peer: Some([192, 0, 2, 7].into()),
        headers: &Fields(request.fields),
    };
    let plan = policy.plan(&attributes, &Hash);
    let rules: Vec<_> = plan.rules.iter().map(|rule| rule.name.to_string()).collect();
    let subjects: Vec<_> = plan.enforced.iter().map(|one| one.subject.to_string()).collect();
    read(&rules, &subjects)
}

fn policy(when: &str) -> Policy {
    let text = format!(
        "subjects: {{ plan: {{ header: x-plan }} }}\n\
         limits: {{ core: {{ quota: 5, window: 1h }}, each: {{ quota: 5, window: 1h, per: plan }} }}\n\
         rules:\n\
         - {{ name: met, match: {{ when: {when:?} }}, limits: core }}\n\
         - {{ name: plans, match: {{ has: plan }}, limits: each }}\n"
    );
    parse("test.yaml", &text).unwrap_or_else(|error| panic!("{error}")).policy
}

fn is_met(when: &str, request: Request<'_>) -> bool {
    plan(&policy(when), request, |rules, _| rules.first().is_some_and(|name| name == "met"))
}

/// Evaluates an expression about the request [`POST`] with the interpreter of the crate `cel`.
fn interpreted(expression: &str) -> Value {
    let map = |all: &[(&str, &str)]| -> HashMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let mut request: HashMap<String, Value> = HashMap::new();
    for (name, value) in [
        ("method", "POST"),
        ("path", "/v1/search"),
        ("query", "q=rust&format=csv&page=2"),
        ("host", "api.example.com"),
    ] {
        request.insert(name.to_owned(), value.into());
    }
    let headers = [("user-agent", "curl/8.5"), ("x-plan", "pro"), ("cookie", "theme=dark; id=7")];
    request.insert("headers".to_owned(), map(&headers).into());
    request.insert(
        "params".to_owned(),
        map(&[("q", "rust"), ("format", "csv"), ("page", "2")]).into(),
    );
    request.insert("cookies".to_owned(), map(&[("theme", "dark"), ("id", "7")]).into());
    let mut context = Context::default();
    context.add_variable_from_value("request", request);
    context.add_variable_from_value("source", map(&[("address", "192.0.2.7")]));
    context.add_variable_from_value("subject", map(&[("plan", "pro")]));
    Program::compile(expression).unwrap().execute(&context).unwrap()
}

const CONDITIONS: [(&str, bool); 40] = [
    ("true", true),
    ("!true", false),
    ("request.method == 'POST'", true),
    ("request.method != 'POST'", false),
    ("'POST' == request.method", true),
    ("request.path == '/v1/search'", true),
    ("request.path.startsWith('/v1/')", true),
    ("request.path.endsWith('search')", true),
    ("request.path.contains('/sea')", true),
    ("request.path.contains('')", true),
    ("request.path.startsWith('/v2/')", false),
    ("request.query == 'q=rust&format=csv&page=2'", true),
    ("request.host == 'api.example.com'", true),
    ("request.host.endsWith('.example.com')", true),
    ("source.address == '192.0.2.7'", true),
    ("request.headers['user-agent'].startsWith('curl/')", true),
    ("request.headers['x-plan'] == subject.plan", true),
    ("subject.plan == 'pro' && request.params.format == 'csv'", true),
    ("subject.plan == 'free' || request.cookies['theme'] == 'dark'", true),
    ("!(subject.plan == 'free' || request.cookies['theme'] == 'dark')", false),
    ("request.method in ['GET', 'HEAD']", false),
    ("request.method in ['PUT', 'POST']", true),
    ("request.method in []", false),
    ("'x-plan' in request.headers", true),
    ("'x-other' in request.headers", false),
    ("!('x-other' in request.headers)", true),
    ("'page' in request.params && 'id' in request.cookies", true),
    ("has(request.headers.cookie)", true),
    ("has(request.params.other)", false),
    ("size(request.path) == 10", true),
    ("size(request.path) != 10", false),
    ("size(request.path) > 10", false),
    ("size(request.path) >= 10", true),
    ("size(request.path) < 10", false),
    ("size(request.path) <= 10", true),
    ("request.path.size() > 9", true),
    ("request.host + request.path == 'api.example.com/v1/search'", true),
    ("(request.method == 'GET' ? 'read' : 'write') == 'write'", true),
    ("request.method == \"POST\" && (true || false) && !false", true),
    (
        "request.path == '/v1/search' && request.params.q == 'rust' && request.params['page'] == '2'",
        true,
    ),
];

#[test]
fn conditions_are_met_as_the_interpreter_says() {
    for (when, expected) in CONDITIONS {
        assert_eq!(is_met(when, POST), expected, "{when}");
        assert_eq!(interpreted(when), Value::Bool(expected), "{when}");
    }
}

#[test]
fn an_attribute_that_the_request_lacks_is_an_empty_text() {
    for (when, expected) in [
        ("request.headers['x-plan'] == ''", true),
        // The rule also matches requests without the header, so a client cannot avoid the rule by
        // leaving the header out.
        ("request.headers['x-plan'] != 'internal'", true),
        ("request.params.format == 'csv'", false),
        ("size(request.query) == 0", true),
        ("has(request.headers.cookie)", false),
        ("subject.plan == ''", true),
        ("request.host == ''", true),
        ("request.path == '/'", true),
    ] {
        assert_eq!(is_met(when, BARE), expected, "{when}");
    }
}

/// A regression test: `has()` did not find parameters and cookies with an empty value.
#[test]
fn an_empty_parameter_or_cookie_is_present() {
    for query in ["debug", "debug=", "a=1&d%65bug&b"] {
        let request = Request { query: Some(query), ..BARE };
        for when in ["has(request.params.debug)", "'debug' in request.params"] {
            assert!(is_met(when, request), "{when} {query}");
        }
        assert!(is_met("request.params.debug == ''", request), "{query}");
        assert!(!is_met("has(request.params.other)", request), "{query}");
    }
    for cookie in [&b"debug="[..], b"a=1; debug=\"\""] {
        let fields: &[(&str, &[u8])] = &[("cookie", cookie)];
        let request = Request { fields, ..BARE };
        assert!(is_met("has(request.cookies.debug) && request.cookies.debug == ''", request));
    }
}

#[test]
fn spellings_of_one_request_meet_the_same_conditions() {
    let path = Request { path: "//v1/./%73earch/", ..POST };
    assert!(is_met("request.path == '/v1/search'", path));
    let method = Request { method: "post", ..POST };
    assert!(is_met("request.method == 'POST'", method));
    let host = Request { host: Some("API.example.com:443"), ..POST };
    assert!(is_met("request.host == 'api.example.com'", host));
    let query = Request { query: Some("form%61t=%63sv"), ..POST };
    assert!(is_met("request.params.format == 'csv'", query));
    let twice: &[(&str, &[u8])] = &[("x-plan", b"internal"), ("x-plan", b"pro")];
    let twice = Request { fields: twice, ..POST };
    assert!(!is_met("request.headers['x-plan'] == 'internal'", twice));
    assert!(is_met("request.headers['x-plan'] != 'internal'", twice));
    let bytes = Request { fields: &[("x-plan", b"\xff\xfe")], ..POST };
    assert!(is_met("size(request.headers['x-plan']) == 2", bytes));
}

#[test]
fn expressions_are_nested_in_not_and_any() {
    let text = "
limits: { core: { quota: 5, window: 1h } }
rules:
  - name: met
    match: { any: [{ when: request.method == 'PUT' }, { method: POST }], not: { when: \"request.host == 'internal'\" } }
    limits: core
";
    let policy = parse("test.yaml", text).unwrap().policy;
    let met = |request| plan(&policy, request, |rules, _| !rules.is_empty());
    assert!(met(POST));
    assert!(met(Request { method: "PUT", ..POST }));
    assert!(!met(Request { method: "GET", ..POST }));
    assert!(!met(Request { host: Some("internal"), ..POST }));
}

#[test]
fn an_expression_is_a_subject() {
    let text = "
subjects:
  tenant: { expression: \"request.host.endsWith('.example.com') ? request.host : request.headers['x-tenant']\" }
  device: { expression: \"request.cookies.id + '/' + request.headers['user-agent']\" }
limits:
  tenant: { quota: 5, window: 1h, per: tenant }
  device: { quota: 5, window: 1h, per: device }
rules: [{ limits: [tenant, device] }]
";
    let loaded = parse("test.yaml", text).unwrap();
    let subjects = |request| plan(&loaded.policy, request, |_, subjects| subjects.to_vec());
    assert_eq!(subjects(POST)[0], "tenant=api.example.com");
    let other = Request { host: Some("other"), fields: &[("x-tenant", b"acme")], ..POST };
    assert_eq!(subjects(other)[0], "tenant=acme");
    assert!(!subjects(POST)[1].contains("curl"), "{:?}", subjects(POST));
    let explanation = explain(&loaded).to_string();
    assert!(
        explanation
            .contains("device  request.cookies.id + '/' + request.headers['user-agent'], hashed"),
        "{explanation}"
    );
}

#[test]
fn an_expression_that_is_not_met_is_named() {
    let policy = policy("request.method == 'PUT'");
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let explanation = trace(&policy, &attributes, &Hash).to_string();
    assert!(
        explanation.contains("the expression is not met: request.method == 'PUT'"),
        "{explanation}"
    );
}

#[test]
fn hostile_expressions_are_refused() {
    for when in [
        "(".repeat(2_000),
        format!("{}true{}", "(".repeat(1_000), ")".repeat(1_000)),
        format!("request.path == {}'a'{}", "[".repeat(500), "]".repeat(500)),
        "a.".repeat(1_000),
        "request.path == 'a' || ".repeat(200),
        "\u{0}".to_owned(),
        "''".repeat(1_000),
    ] {
        let text = format!(
            "limits: {{ a: {{ quota: 1, window: 1s }} }}\nrules: [{{ match: {{ when: {when:?} }}, limits: a }}]"
        );
        assert!(parse("test.yaml", &text).is_err(), "{when}");
    }
    let long = format!("request.path in ['{}']", vec!["a"; 480].join("','"));
    assert!(!is_met(&long, POST));
    assert!(is_met(&format!("{}true", "!".repeat(2_000)), POST));
}
