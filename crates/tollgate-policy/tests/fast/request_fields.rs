//! The header fields that a policy reads from requests.

use tollgate_policy::parse;

#[test]
fn a_policy_lists_each_header_field_that_it_reads() {
    let text = "
subjects:
  key: { credential: X-Special-Key }
  plan: { header: X-User-Plan, trusted: true }
  caller: { first_of: [key, plan] }
  region: { expression: \"request.headers['x-region'] + ':' + request.path\" }
  session: { cookie: session_id }
limits:
  all: { quota: 10, window: 1m, per: [caller, region] }
rules:
  - name: search
    match:
      header: { x-kind: search }
      any: [{ header: { X-One: \"1\" } }, { when: \"'x-two' in request.headers\" }]
      not: [{ header: { x-internal: \"*\" } }]
    limits: [all]
";
    let policy = parse("policy.yaml", text).unwrap_or_else(|errors| panic!("{errors}")).policy;
    let names: Vec<String> = policy.request_fields().iter().map(ToString::to_string).collect();
    let expected =
        ["x-internal", "x-kind", "x-one", "x-region", "x-special-key", "x-two", "x-user-plan"];
    assert_eq!(names, expected);
}
