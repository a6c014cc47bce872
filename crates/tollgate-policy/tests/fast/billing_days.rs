//! Billing days that depend on the value of a subject.

use tollgate_core::algo::Anchor;
use tollgate_core::policy::Named;
use tollgate_core::{Algorithm, Cost, Headers, KeyedHash, Limit, Policy, RequestAttributes};
use tollgate_policy::{explain, parse};

struct Sum;

impl KeyedHash for Sum {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)); 16]
    }
}

const POLICY: &str = "
subjects:
  customer: { header: x-customer }
  plan: { header: x-plan, trusted: true }
  renewal: { header: x-renewal, trusted: true }
limits:
  month:
    quota: { by: plan, values: { pro: 6_000 }, default: 30 }
    window: month
    billing_day: { by: renewal, default: 5 }
    timezone: Europe/Berlin
    per: customer
rules: [{ match: { has: customer }, limits: month }]
";

fn policy() -> Policy {
    parse("shop.yaml", POLICY).unwrap_or_else(|mistakes| panic!("{mistakes}")).policy
}

fn windows(limit: &Limit) -> (u64, &'static str) {
    let Algorithm::FixedWindow(window) = limit.algorithm() else { panic!("{limit:?}") };
    let Anchor::Scheduled(schedule) = window.anchor() else { panic!("{limit:?}") };
    (window.quota(), schedule.name())
}

struct Fields(Vec<(&'static str, &'static [u8])>);

impl Headers for Fields {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.as_slice().value(name, index)
    }
}

fn charged(fields: &[(&'static str, &'static [u8])]) -> (u64, &'static str) {
    let mut all: Vec<(&'static str, &'static [u8])> = vec![("x-customer", b"amy")];
    all.extend(fields);
    let headers = Fields(all);
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &headers,
    };
    windows(&policy().plan(&attributes, &Sum).enforced[0].limit)
}

const BERLIN_5: &str = "month from day 5 in Europe/Berlin";

#[test]
fn the_value_of_the_subject_is_the_billing_day() {
    assert_eq!(charged(&[]), (30, BERLIN_5));
    assert_eq!(charged(&[("x-renewal", b"15")]), (30, "month from day 15 in Europe/Berlin"));
    assert_eq!(charged(&[("x-renewal", b" 31 ")]), (30, "month from day 31 in Europe/Berlin"));
    assert_eq!(
        charged(&[("x-renewal", b"1"), ("x-plan", b"pro")]),
        (6_000, "month in Europe/Berlin")
    );
    for wrong in [&b"0"[..], b"32", b"07", b"-1", b"1.0", b"first", b"\xff"] {
        assert_eq!(charged(&[("x-renewal", wrong)]), (30, BERLIN_5));
    }
    // A repeated header has no value.
    assert_eq!(charged(&[("x-renewal", b"15"), ("x-renewal", b"16")]), (30, BERLIN_5));
}

#[test]
fn a_charge_by_name_gives_the_billing_day() {
    let policy = policy();
    let charged = |values: &[(&str, Option<&str>)]| {
        let named = Named { limit: "month", subject: values, cost: Cost::ONE };
        let plan = policy.plan_named([named], &Sum).unwrap();
        windows(&plan.planned[0].limit)
    };
    let (customer, plan) = (("customer", Some("amy")), ("plan", Some("pro")));
    assert_eq!(charged(&[customer]), (30, BERLIN_5));
    let renewal = ("renewal", Some("20"));
    assert_eq!(charged(&[customer, renewal]), (30, "month from day 20 in Europe/Berlin"));
    assert_eq!(charged(&[customer, plan, renewal]), (6_000, "month from day 20 in Europe/Berlin"));
}

#[test]
fn the_explanation_names_the_subject() {
    let loaded = parse("shop.yaml", POLICY).unwrap();
    let text = explain(&loaded).to_string();
    assert!(text.contains("; the billing day is the value of renewal"), "{text}");
}
