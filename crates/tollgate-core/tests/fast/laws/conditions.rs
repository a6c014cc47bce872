//! Conditions in `any` and `not` are evaluated like the formula that they form, and the status of
//! a client has every limit that one of the client's requests can be charged on.

use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::policy::{
    Attribute, Condition, Dimension, LimitBinding, LimitRef, MatchMode, PathPattern, PlainPlan,
    RequestMatch, Rule, SubjectSource, Text, ValueMatch, ValuePattern, WrittenCondition,
};
use tollgate_core::{
    Algorithm, Cost, Headers, KeyedHash, Limit, Millis, Policy, RequestAttributes,
};

use crate::laws::world::config;

struct Zero;

impl KeyedHash for Zero {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

/// One condition on a request. Two requests differ in all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Atom {
    Method,
    Path,
    Query,
    When,
    Host,
    Header,
    Cookie,
    Has,
    Lacks,
}

const ATOMS: [Atom; 9] = [
    Atom::Method,
    Atom::Path,
    Atom::Query,
    Atom::When,
    Atom::Host,
    Atom::Header,
    Atom::Cookie,
    Atom::Has,
    Atom::Lacks,
];

impl Atom {
    /// Returns whether the condition can depend on the method, the path or the query.
    fn is_about_operation(self) -> bool {
        matches!(self, Self::Method | Self::Path | Self::Query | Self::When)
    }
}

/// All of `atoms`, one of `any`, and none of `not`.
#[derive(Clone, Debug)]
struct Formula {
    atoms: Vec<Atom>,
    any: Vec<Self>,
    not: Vec<Self>,
}

fn formula() -> impl Strategy<Value = Formula> {
    let atoms = || prop::collection::vec(prop::sample::select(&ATOMS[..]), 0..3);
    let leaf = atoms().prop_map(|atoms| Formula { atoms, any: Vec::new(), not: Vec::new() });
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..3);
        (atoms(), some(), some()).prop_map(|(atoms, any, not)| Formula { atoms, any, not })
    })
}

/// A request that meets some of the conditions.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// For each condition, whether the request meets it.
    met: [bool; ATOMS.len()],
}

impl Request {
    fn meets(&self, atom: Atom) -> bool {
        match atom {
            Atom::Lacks => !self.meets(Atom::Has),
            _ => self.met[atom as usize],
        }
    }
}

impl Headers for Request {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        let atom = match name {
            "x-header" => Atom::Header,
            "cookie" => Atom::Cookie,
            "x-when" => Atom::When,
            _ => Atom::Has,
        };
        let value: &[u8] = if name == "cookie" { b"a=b; cookie=1" } else { b"1" };
        (index == 0 && self.meets(atom)).then_some(value)
    }
}

impl Formula {
    fn is_met(&self, request: &Request) -> bool {
        self.atoms.iter().all(|atom| request.meets(*atom))
            && (self.any.is_empty() || self.any.iter().any(|one| one.is_met(request)))
            && !self.not.iter().any(|one| one.is_met(request))
    }

    fn is_about_operation(&self) -> bool {
        let mut nested = self.any.iter().chain(&self.not);
        self.atoms.iter().any(|atom| atom.is_about_operation())
            || nested.any(Self::is_about_operation)
    }

    fn conditions(&self) -> RequestMatch {
        let value = |name: &str| ValueMatch {
            name: name.into(),
            values: vec![ValuePattern::Exact("1".into())],
        };
        let mut matches = RequestMatch::default();
        for atom in &self.atoms {
            match atom {
                Atom::Method => matches.methods = vec!["PUT".into()],
                Atom::Path => matches.paths = vec![PathPattern::parse("/path").unwrap()],
                Atom::Query => matches.query = vec![value("query")],
                Atom::When => {
                    let (value, one) =
                        (Text::Of(Attribute::Dimension(1)), Text::Literal("1".into()));
                    let condition = Condition::Equal(value, one);
                    let written = WrittenCondition { text: "".into(), condition };
                    matches.when = Some(Box::new(written));
                }
                Atom::Host => matches.hosts = vec!["host".into()],
                Atom::Header => matches.headers = vec![value("x-header")],
                Atom::Cookie => matches.cookies = vec![value("cookie")],
                Atom::Has => matches.has = vec![0],
                Atom::Lacks => matches.lacks = vec![0],
            }
        }
        matches.any = self.any.iter().map(Self::conditions).collect();
        matches.not = self.not.iter().map(Self::conditions).collect();
        matches
    }

    fn policy(&self) -> Policy {
        let dimension = |name: &str| Dimension {
            name: name.into(),
            source: SubjectSource::Header { header: format!("x-{name}").into() },
        };
        let window = FixedWindow::new(9, Millis::from_secs(60), Anchor::Calendar).unwrap();
        let limit = Arc::new(Limit::new("limit", Algorithm::FixedWindow(window)).unwrap());
        let limits = vec![LimitBinding { limit, per: Vec::new() }];
        let used = vec![LimitRef { limit: 0, cost: Cost::ONE }];
        let rules = vec![Rule::new("rule", self.conditions(), used)];
        let dimensions = ["has", "when"].map(dimension).to_vec();
        Policy::new(dimensions, limits, rules, MatchMode::FirstMatch).unwrap()
    }
}

fn attributes(request: &Request) -> RequestAttributes<'_> {
    RequestAttributes {
        method: if request.meets(Atom::Method) { "PUT" } else { "GET" },
        path: if request.meets(Atom::Path) { "/path" } else { "/" },
        query: Some(if request.meets(Atom::Query) { "query=1" } else { "query=2" }),
        host: request.meets(Atom::Host).then_some("host"),
        peer: None,
        headers: request,
    }
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn conditions_are_the_formula_that_they_form(formula in formula(), met in any::<[bool; 9]>()) {
        let (policy, request) = (formula.policy(), Request { met });
        let attributes = attributes(&request);
        let is_met = formula.is_met(&request);
        let plan = policy.plan(&attributes, &Zero);
        prop_assert_eq!(plan.rules.len(), usize::from(is_met));
        let mut plain = PlainPlan::default();
        prop_assert!(policy.plan_plain(&attributes, &Zero, &mut plain));
        prop_assert_eq!(plain.charges(), plan.enforced);
        let mismatch = policy.first_mismatch(&policy.rules()[0], &attributes);
        prop_assert_eq!(mismatch.is_none(), is_met, "{:?}", mismatch);
    }

    #[test]
    fn a_status_has_every_limit_that_a_request_can_be_charged_on(
        formula in formula(), met in any::<[bool; 9]>(),
    ) {
        let (policy, request) = (formula.policy(), Request { met });
        let has_limit = |request: &Request| !policy.status_plan(&attributes(request), &Zero).is_empty();
        // All requests of the client, with and without each condition on the operation.
        let can_be_charged = (0..16).any(|bits: usize| {
            let mut request = request;
            request.met[..4].iter_mut().enumerate().for_each(|(index, met)| {
                *met = bits >> index & 1 == 1;
            });
            formula.is_met(&request)
        });
        prop_assert!(has_limit(&request) || !can_be_charged);
        if !formula.is_about_operation() {
            prop_assert_eq!(has_limit(&request), can_be_charged);
        }
    }
}
