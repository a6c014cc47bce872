//! Plans that reuse memory contain the charges of their own request, and not those of the request
//! before.

use std::sync::Arc;

use tollgate_core::algo::{Anchor, FixedWindow, Schedule, ScheduledWindow, WindowSchedule};
use tollgate_core::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, Meter, MeteredLimit, PathPattern, PlainPlan,
    QuotasByValue, RequestMatch, Rule, SubjectSource, WindowsByValue,
};
use tollgate_core::{
    Algorithm, Cost, Headers, KeyedHash, Limit, Millis, Policy, RequestAttributes, Timestamp,
};

struct Zero;

impl KeyedHash for Zero {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

/// A schedule with windows of one second.
#[derive(Debug)]
struct Seconds(&'static str);

impl WindowSchedule for Seconds {
    fn window_at(&self, now: Timestamp) -> ScheduledWindow {
        let start = now.as_millis() / 1_000 * 1_000;
        let time = Timestamp::from_millis;
        ScheduledWindow { start: time(start), end: time(start + 1_000) }
    }

    fn longest(&self) -> Millis {
        Millis::new(1_000)
    }

    fn nominal(&self) -> Millis {
        Millis::new(1_000)
    }

    fn name(&self) -> &str {
        self.0
    }
}

static DEFAULT: Seconds = Seconds("default");
static FIFTEEN: Seconds = Seconds("15");

struct Fields<'a, const N: usize>([(&'a str, &'a [u8]); N]);

impl<const N: usize> Headers for Fields<'_, N> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.as_slice().value(name, index)
    }
}

fn policy(with_plans: bool) -> Policy {
    let names = [("user", "x-user"), ("renewal", "x-renewal"), ("plan", "x-plan")];
    let dimensions = names.map(|(name, header)| Dimension {
        name: name.into(),
        source: SubjectSource::Header { header: header.into() },
    });
    let window = FixedWindow::scheduled(3, Schedule::new(&DEFAULT)).unwrap();
    let limit = Limit::new("month", Algorithm::FixedWindow(window)).unwrap();
    let quotas = with_plans.then(|| {
        let pro = Arc::new(limit.for_value("pro", 9, None).unwrap());
        QuotasByValue::new(0, 2, vec![pro]).unwrap()
    });
    let days = vec![("15".into(), Schedule::new(&FIFTEEN))];
    let windows = WindowsByValue::new(0, 1, days).unwrap();
    let binding = LimitBinding { limit: Arc::new(limit), per: vec![0] };
    let used = vec![LimitRef { limit: 0, cost: Cost::ONE }];
    let rule = Rule::new("all", RequestMatch::default(), used);
    let rules = MatchMode::FirstMatch;
    let policy = Policy::new(dimensions.into(), vec![binding], vec![rule], rules).unwrap();
    let policy = policy.with_quotas(quotas.into_iter().collect()).unwrap();
    policy.with_windows(vec![windows]).unwrap()
}

#[test]
fn the_windows_and_the_quota_of_a_request_are_not_those_of_the_one_before() {
    for with_plans in [false, true] {
        let (policy, mut plain) = (policy(with_plans), PlainPlan::default());
        for (day, plan, schedule, quota) in [
            ("", "", "default", 3),
            ("15", "", "15", 3),
            ("", "pro", "default", 9),
            ("15", "pro", "15", 9),
            ("16", "", "default", 3),
        ] {
            let headers = Fields([
                ("x-user", b"ann"),
                ("x-renewal", day.as_bytes()),
                ("x-plan", plan.as_bytes()),
            ]);
            let attributes = RequestAttributes {
                method: "GET",
                path: "/",
                query: None,
                host: None,
                peer: None,
                headers: &headers,
            };
            assert!(policy.plan_plain(&attributes, &Zero, &mut plain));
            let whole = policy.plan(&attributes, &Zero);
            let limits = [&whole.enforced[0].limit, &plain.charges()[0].limit];
            for limit in limits {
                let Algorithm::FixedWindow(window) = limit.algorithm() else { panic!() };
                let Anchor::Scheduled(found) = window.anchor() else { panic!() };
                let quota = if with_plans { quota } else { 3 };
                assert_eq!((found.name(), window.quota()), (schedule, quota), "{day} {plan}");
            }
        }
    }
}

/// Creates a policy with more rules than a plan keeps charges of. The rules have different numbers
/// of limits: a limit of their own, and limits that all rules share, for the same subject and for
/// other subjects. Some limits are metered.
fn many_rules() -> Policy {
    let header = |header: &str| SubjectSource::Header { header: header.into() };
    let sources = [header("x-user"), header("x-team"), SubjectSource::Route];
    let dimensions = sources.into_iter().zip(["user", "team", "route"]);
    let dimensions = dimensions.map(|(source, name)| Dimension { name: name.into(), source });
    let binding = |number: usize, per: Vec<usize>| {
        let window = FixedWindow::new(9, Millis::from_secs(60), Anchor::Calendar).unwrap();
        let limit = Limit::new(&format!("limit-{number}"), Algorithm::FixedWindow(window));
        LimitBinding { limit: Arc::new(limit.unwrap()), per }
    };
    let per = [vec![0], vec![0], vec![1], vec![0, 1], vec![], vec![2]];
    let limits = (0..RULES).map(|_| vec![0]).chain(per).enumerate();
    let limits = limits.map(|(number, per)| binding(number, per)).collect();
    let rules = (0..RULES).map(|number| {
        let used = |limit| LimitRef { limit, cost: Cost::up_to(1 + limit as u64 % 3) };
        let limits = [number, RULES, RULES + 1, RULES + 2, RULES + 3, RULES + 4, RULES + 5];
        let path = match number % 4 {
            3 => format!("/{number}/**"),
            _ => format!("/{number}/{{id}}"),
        };
        let matches = RequestMatch {
            paths: vec![PathPattern::parse(&path).unwrap()],
            methods: if number % 2 == 0 { vec!["GET".into()] } else { Vec::new() },
            has: if number % 3 == 0 { vec![0, 1] } else { vec![0] },
            lacks: if number % 5 == 4 { vec![1] } else { Vec::new() },
            ..RequestMatch::default()
        };
        let limits = limits.into_iter().take(2 + number % 6).map(used).collect();
        let mut rule = Rule::new(format!("rule-{number}"), matches, limits);
        if number % 2 == 1 {
            let meter = Arc::new(Meter::Time { each: Millis::new(1) });
            rule.metered.push(MeteredLimit { limit: RULES, meter, reserve: None });
        }
        rule
    });
    let rules = rules.collect();
    Policy::new(dimensions.collect(), limits, rules, MatchMode::FirstMatch).unwrap()
}

const RULES: usize = 20;

#[test]
fn a_plain_plan_has_the_charges_of_the_whole_plan() {
    let (policy, mut plain) = (many_rules(), PlainPlan::default());
    let mut planned = 0;
    for round in 0..60_usize {
        for number in 0..=RULES {
            let number = if round % 2 == 0 { number } else { number % 3 };
            let path = format!("/{number}/{round}");
            let (user, team) = (format!("user-{}", round % 4), format!("team-{number}"));
            let both = Fields([("x-user", user.as_bytes()), ("x-team", team.as_bytes())]);
            let only_user = Fields([("x-user", user.as_bytes())]);
            let headers: &dyn Headers = if round % 3 == 0 { &only_user } else { &both };
            let attributes = RequestAttributes {
                method: if round % 5 == 0 { "POST" } else { "get" },
                path: &path,
                query: None,
                host: None,
                peer: None,
                headers,
            };
            assert!(policy.plan_plain(&attributes, &Zero, &mut plain));
            let whole = policy.plan(&attributes, &Zero);
            assert_eq!(plain.charges(), whole.enforced, "{number} in round {round}");
            planned += plain.charges().len();
        }
    }
    assert!(planned > 1_000, "{planned} charges");
}

#[test]
fn a_replaced_policy_does_not_use_the_charges_of_the_one_before() {
    let (old, mut plain) = (many_rules(), PlainPlan::default());
    let headers = Fields([("x-user", b"ann"), ("x-team", b"a")]);
    let attributes = RequestAttributes {
        method: "GET",
        path: "/1/2",
        query: None,
        host: None,
        peer: None,
        headers: &headers,
    };
    let replaced = many_rules().replacing(&old, Timestamp::from_millis(1));
    for policy in [&old, &replaced, &old.clone(), &replaced] {
        assert!(policy.plan_plain(&attributes, &Zero, &mut plain));
        let whole = policy.plan(&attributes, &Zero);
        assert!(!whole.enforced.is_empty());
        for (one, other) in plain.charges().iter().zip(&whole.enforced) {
            assert!(Arc::ptr_eq(&one.limit, &other.limit));
        }
        assert_eq!(plain.charges(), whole.enforced);
    }
}

/// A rule is found by its method, whatever the case, and by the first byte of its path.
#[test]
fn the_rules_of_a_request_are_those_with_its_method_and_its_path() {
    let methods = ["GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "MKCALENDAR"];
    let patterns = ["/a", "/b", "/ab", "/{any}"];
    let rule = |method: &str, pattern: &str| {
        let matches = RequestMatch {
            methods: vec![method.into()],
            paths: vec![PathPattern::parse(pattern).unwrap()],
            ..RequestMatch::default()
        };
        Rule::new(format!("{method} {pattern}"), matches, Vec::new())
    };
    let rules = methods.iter().flat_map(|method| patterns.map(|pattern| rule(method, pattern)));
    let rules: Vec<Rule> = rules.collect();
    let policy = Policy::new(Vec::new(), Vec::new(), rules.clone(), MatchMode::AllMatches).unwrap();
    let others = ["TRACE", "COPY", "UNSUBSCRIBE"];
    let cases = methods.into_iter().chain(others);
    for (method, path) in cases.flat_map(|it| ["/a", "/b", "/%61b"].map(|path| (it, path))) {
        for sent in [method.to_owned(), method.to_ascii_lowercase()] {
            let attributes = RequestAttributes {
                method: &sent,
                path,
                query: None,
                host: None,
                peer: None,
                headers: &(),
            };
            let found = policy.plan(&attributes, &Zero).rules;
            let found: Vec<_> = found.iter().map(|rule| &rule.name).collect();
            let fits = |rule: &&Rule| policy.first_mismatch(rule, &attributes).is_none();
            let expected: Vec<_> = rules.iter().filter(fits).map(|rule| &rule.name).collect();
            assert_eq!(found, expected, "{sent} {path}");
            assert_eq!(found.len(), if methods.contains(&method) { 2 } else { 0 });
        }
    }
}

/// The bug that this prevents: two long methods that differ only in their first letters are equal
/// to the index, and a plain plan does not compare methods again.
#[test]
fn long_methods_with_the_same_end_are_different() {
    let header = SubjectSource::Header { header: "x-user".into() };
    let dimension = Dimension { name: "user".into(), source: header };
    let window = FixedWindow::new(9, Millis::from_secs(60), Anchor::Calendar).unwrap();
    let limit = Arc::new(Limit::new("limit", Algorithm::FixedWindow(window)).unwrap());
    let matches = RequestMatch { methods: vec!["XPROPFIND".into()], ..RequestMatch::default() };
    let used = vec![LimitRef { limit: 0, cost: Cost::ONE }];
    let rules = vec![Rule::new("rule", matches, used)];
    let binding = LimitBinding { limit, per: vec![0] };
    let policy = Policy::new(vec![dimension], vec![binding], rules, MatchMode::FirstMatch).unwrap();
    let headers = Fields([("x-user", b"ann")]);
    let mut plain = PlainPlan::default();
    for (method, count) in [("XPROPFIND", 1), ("YPROPFIND", 0), ("xpropfind", 1), ("PROPFIND", 0)] {
        let attributes = RequestAttributes {
            method,
            path: "/",
            query: None,
            host: None,
            peer: None,
            headers: &headers,
        };
        assert!(policy.plan_plain(&attributes, &Zero, &mut plain));
        assert_eq!(plain.charges().len(), count, "{method}");
        assert_eq!(policy.plan(&attributes, &Zero).enforced.len(), count, "{method}");
    }
}
