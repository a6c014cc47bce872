//! What the plan of a request states about its rules, and which charges the response can change.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::algo::{Anchor, FixedWindow, Schedule};
use tollgate_core::policy::{
    Ambiguity, AmbiguousPaths, Attribute, ChargeOn, Condition, Dimension, LimitBinding, LimitRef,
    MatchMode, Meter, MeteredLimit, Named, OnFailure, PathOptions, PlainPlan, PlannedCharge,
    Priority, Queue, QuotasByValue, RequestMatch, ReservationAmount, ReservationSource, Rule,
    RuleMode, RuleSwitch, SubjectSource, TenantLookup, Text, ValueMatch, WindowsByValue,
    WrittenCondition,
};
use tollgate_core::{
    Algorithm, Cost, Headers, KeyedHash, Limit, Millis, Policy, RequestAttributes, StatusSet,
    Subject, Timestamp, Visibility,
};

struct Zero;

impl KeyedHash for Zero {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

fn limit(name: &str) -> Limit {
    let window = FixedWindow::new(10, Millis::from_secs(60), Anchor::Calendar).unwrap();
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
}

fn shared(limit: Limit) -> LimitBinding {
    LimitBinding { limit: Arc::new(limit), per: Vec::new() }
}

fn used(limit: usize) -> LimitRef {
    LimitRef { limit, cost: Cost::ONE }
}

fn rule(name: &str) -> Rule {
    Rule::new(name, RequestMatch::default(), vec![used(0)])
}

fn policy(rules: Vec<Rule>) -> Policy {
    Policy::new(Vec::new(), vec![shared(limit("all"))], rules, MatchMode::AllMatches).unwrap()
}

fn attributes<'a>(path: &'a str, headers: &'a dyn Headers) -> RequestAttributes<'a> {
    RequestAttributes { method: "GET", path, query: None, host: None, peer: None, headers }
}

fn statuses() -> StatusSet {
    StatusSet::default().with(400, 499)
}

#[test]
fn the_strictest_of_the_enforcing_rules_decides() {
    let queue = |length| Some(Queue { wait: Millis::from_secs(1), length });
    let loose = Rule {
        charge: ChargeOn::Completion,
        on_failure: OnFailure::Allow,
        queue: queue(1),
        priority: Some(Priority::Test),
        ..rule("loose")
    };
    let strict = Rule {
        charge: ChargeOn::Arrival,
        on_failure: OnFailure::Deny,
        queue: queue(2),
        priority: Some(Priority::Critical),
        ..rule("strict")
    };
    let shadow = Rule { mode: RuleMode::Shadow, ..strict.clone() };
    let terms = |rules: &[&Rule], off: &str| {
        let policy = policy(rules.iter().copied().cloned().collect());
        let switch = |rule: &Rule| match *rule.name == *off {
            true => RuleSwitch::Counted,
            false => RuleSwitch::On,
        };
        let plan = policy.plan_switched(&attributes("/", &()), &Zero, switch);
        (plan.charge(), plan.on_failure(), plan.queue().map(|queue| queue.length))
    };
    let of_loose = (ChargeOn::Completion, OnFailure::Allow, Some(1));
    assert_eq!(terms(&[&loose], ""), of_loose);
    assert_eq!(terms(&[&loose, &shadow], ""), of_loose, "a shadow rule decides nothing");
    assert_eq!(terms(&[&loose, &strict], "strict"), of_loose, "nor does a rule that only counts");
    assert_eq!(terms(&[&loose, &strict], ""), (ChargeOn::Arrival, OnFailure::Deny, Some(1)));
    let none = (ChargeOn::default(), OnFailure::default(), None);
    assert_eq!(terms(&[], ""), none);
    assert_eq!(terms(&[&strict], "strict"), none);
    let plain = rule("plain");
    assert_eq!(terms(&[&plain, &strict], "").2, Some(2), "the first queue of a rule that has one");
    let both = policy(vec![loose, strict]);
    assert_eq!(both.plan(&attributes("/", &()), &Zero).priority, Priority::Critical);
    assert_eq!(policy(vec![plain]).plan(&attributes("/", &()), &Zero).priority, Priority::Read);
}

#[test]
fn a_switched_rule_charges_beside_the_others_or_not_at_all() {
    let policy = policy(vec![rule("rule")]);
    let plan = |switch| policy.plan_switched(&attributes("/", &()), &Zero, |_| switch);
    for (switch, enforced, shadowed) in
        [(RuleSwitch::On, 1, 0), (RuleSwitch::Counted, 0, 1), (RuleSwitch::Off, 0, 0)]
    {
        let plan = plan(switch);
        assert_eq!((plan.enforced.len(), plan.shadowed.len()), (enforced, shadowed), "{switch:?}");
        assert_eq!(plan.overridden_rules.len(), usize::from(switch != RuleSwitch::On));
    }
}

#[test]
fn an_ambiguous_path_is_refused_unless_the_policy_passes_it() {
    for (ambiguous, ambiguity) in
        [(AmbiguousPaths::Refuse, Some(Ambiguity::EncodedSlash)), (AmbiguousPaths::Pass, None)]
    {
        let options = PathOptions { ambiguous, ..PathOptions::default() };
        let policy = policy(vec![rule("rule")]).with_paths(options);
        assert_eq!(policy.plan(&attributes("/a%2fb", &()), &Zero).ambiguity, ambiguity);
        assert_eq!(policy.plan(&attributes("/a/b", &()), &Zero).ambiguity, None);
    }
}

/// Returns the charge of a rule on a limit, each with or without conditions on the status.
fn charge(counted: bool, refund: bool, metered: bool) -> PlannedCharge {
    let limit = if counted { limit("all").with_counted(statuses()) } else { limit("all") };
    let mut rule = rule("rule");
    rule.refund = refund.then(|| Arc::new(statuses()));
    if metered {
        let meter = Arc::new(Meter::Size { bytes: NonZeroU64::MIN });
        rule.metered.push(MeteredLimit { limit: 0, meter, reserve: None });
    }
    let policy = Policy::new(Vec::new(), vec![shared(limit)], vec![rule], MatchMode::FirstMatch);
    let (policy, attributes) = (policy.unwrap(), attributes("/", &()));
    let mut planned = policy.plan(&attributes, &Zero).enforced;
    let mut plain = PlainPlan::default();
    assert!(policy.plan_plain(&attributes, &Zero, &mut plain));
    assert_eq!(plain.charges(), planned);
    planned.remove(0)
}

#[test]
fn a_charge_is_conditional_if_a_status_can_refund_it() {
    for metered in [false, true] {
        for (counted, refund) in [(false, false), (true, false), (false, true), (true, true)] {
            let charge = charge(counted, refund, metered);
            assert_eq!(charge.is_conditional(), counted || refund, "{charge:?}");
            assert_eq!(charge.counts_statuses(), counted, "{charge:?}");
            assert_eq!(charge.estimates.len(), usize::from(metered));
        }
    }
    let counted = Arc::new(limit("all").with_counted(statuses()));
    let conditional =
        |cost| PlannedCharge::new(Arc::clone(&counted), Subject::default(), cost).is_conditional();
    assert!(conditional(Cost::ONE) && !conditional(Cost::PEEK));
}

#[test]
fn a_status_plan_reads_each_visible_resource_once() {
    let resource = |name, resource| limit(name).with_resource(resource).unwrap();
    let limits = vec![
        shared(resource("first", "core")),
        shared(resource("second", "core")),
        shared(resource("third", "other")),
        shared(limit("hidden").with_visibility(Visibility::Hidden)),
    ];
    let rule = |name: &str, limits: &[usize]| Rule {
        limits: limits.iter().copied().map(used).collect(),
        ..rule(name)
    };
    let shadow = Rule { mode: RuleMode::Shadow, ..rule("shadow", &[2]) };
    let rules = vec![shadow, rule("one", &[0, 1, 3]), rule("two", &[1, 2])];
    let policy = Policy::new(Vec::new(), limits, rules, MatchMode::FirstMatch).unwrap();
    let names = |off: &str| {
        let switch = |rule: &Rule| match *rule.name == *off {
            true => RuleSwitch::Off,
            false => RuleSwitch::On,
        };
        let plan = policy.status_plan_switched(&attributes("/", &()), &Zero, switch);
        assert!(plan.iter().all(|charge| charge.cost == Cost::PEEK));
        plan.iter().map(|charge| charge.limit.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["first", "third"]);
    assert_eq!(names("one"), ["second", "third"]);
    assert_eq!(names("two"), ["first"]);
}

/// Rows that change with every lookup.
#[derive(Debug)]
struct Changing(AtomicU64);

impl TenantLookup for Changing {
    fn limit(&self, _: &[u8], base: &Arc<Limit>, _: Option<&QuotasByValue>) -> Option<Arc<Limit>> {
        let quota = self.0.fetch_add(1, Ordering::Relaxed);
        Some(Arc::new(base.for_tenant(quota, None).unwrap()))
    }
}

fn header(name: &str) -> Dimension {
    let source = SubjectSource::Header { header: format!("x-{name}").into() };
    Dimension { name: name.into(), source }
}

struct Ann;

impl Headers for Ann {
    fn value(&self, _: &str, index: usize) -> Option<&[u8]> {
        (index == 0).then_some(b"ann")
    }
}

#[test]
fn a_counter_has_one_quota_in_one_request() {
    let limits =
        ["each", "other"].map(|name| LimitBinding { limit: Arc::new(limit(name)), per: vec![0] });
    let uses = |name| Rule { limits: vec![used(0), used(1)], ..rule(name) };
    let rules = vec![uses("one"), uses("two")];
    let dimensions = ["user", "plan"].map(header).to_vec();
    let policy = Policy::new(dimensions, limits.to_vec(), rules, MatchMode::AllMatches).unwrap();
    let changing = policy.clone().with_tenants(0).unwrap();
    let changing = changing.with_tenant_rows(Arc::new(Changing(AtomicU64::new(20))));
    let of = |planned: &[PlannedCharge]| {
        let of = |charge: &PlannedCharge| (charge.limit.capacity(), charge.cost.get());
        planned.iter().map(of).collect::<Vec<_>>()
    };
    let plan = changing.plan(&attributes("/", &Ann), &Zero);
    assert_eq!(of(&plan.enforced), [(20, 2), (21, 2)]);

    let pro = Arc::new(limits[0].limit.for_value("pro", 30, None).unwrap());
    let quotas = QuotasByValue::new(0, 1, vec![pro]).unwrap();
    let policy = policy.with_quotas(vec![quotas]).unwrap();
    let subject = |user, plan| [("user", Some(user)), ("plan", Some(plan))];
    let (pro, free, bob) = (subject("ann", "pro"), subject("ann", "free"), subject("bob", "free"));
    let named = |subject| Named { limit: "each", cost: Cost::ONE, subject };
    let plan = policy.plan_named([named(&pro), named(&free), named(&bob)], &Zero).unwrap();
    assert_eq!(of(&plan.planned), [(30, 2), (10, 1)]);
}

/// The bug: if two rules selected different quotas or windows for one counter, the request was
/// charged twice on the counter, by two limits. Both charges fitted although their sum did not fit.
#[test]
fn two_rules_charged_one_counter_by_two_quotas() {
    let limits = [LimitBinding { limit: Arc::new(limit("each")), per: vec![0] }];
    let route = Dimension { name: "route".into(), source: SubjectSource::Route };
    let rules = vec![rule("one"), rule("two")];
    let dimensions = vec![header("user"), route];
    let policy = Policy::new(dimensions, limits.to_vec(), rules, MatchMode::AllMatches).unwrap();
    let values = [("one", 5), ("two", 6)];
    let of = |(value, quota)| Arc::new(limits[0].limit.for_value(value, quota, None).unwrap());
    let quotas = QuotasByValue::new(0, 1, values.map(of).to_vec()).unwrap();
    let by_quota = policy.clone().with_quotas(vec![quotas]).unwrap();
    let day = |day: u64| {
        Schedule::ending(Timestamp::from_millis(day * 86_400_000), Millis::from_secs(86_400))
    };
    let windows = vec![("one".into(), day(1)), ("two".into(), day(2))];
    let windows = WindowsByValue::new(0, 1, windows).unwrap();
    let by_window = policy.with_windows(vec![windows]).unwrap();
    for (policy, capacity, window) in [(by_quota, 5, 60), (by_window, 10, 86_400)] {
        let plan = policy.plan(&attributes("/", &Ann), &Zero);
        let [charge] = &*plan.enforced else { panic!("{:?}", plan.enforced) };
        assert_eq!((charge.cost.get(), charge.limit.capacity()), (2, capacity));
        assert_eq!(charge.limit.window(), Millis::from_secs(window));
    }
}

#[test]
fn the_header_fields_of_a_policy_are_those_that_decide() {
    let name = |name: &str| Attribute::Header(name.into());
    let expression = SubjectSource::Expression {
        text: Text::Joined(vec![Text::Of(name("x-text")), Text::Of(Attribute::Host)]),
        written: "".into(),
        is_secret: false,
    };
    let first_of = SubjectSource::FirstOf {
        dimensions: vec![
            header("first"),
            Dimension {
                name: "key".into(),
                source: SubjectSource::Credential { header: "x-key".into() },
            },
        ],
    };
    let source = |source| Dimension { name: "source".into(), source };
    let dimensions = vec![header("user"), source(expression), source(first_of)];
    let wanted = |name: &str| RequestMatch {
        headers: vec![ValueMatch { name: name.into(), values: Vec::new() }],
        ..RequestMatch::default()
    };
    let condition = Condition::Has(name("x-when"));
    let when = Some(Box::new(WrittenCondition { text: "".into(), condition }));
    let (any, not) = (vec![wanted("x-any")], vec![wanted("x-not")]);
    let mut rule = rule("rule");
    rule.matches = RequestMatch { when, any, not, ..wanted("x-header") };
    let source = ReservationSource::Header { field: "x-cost".into() };
    let reserve = Some(ReservationAmount { source, at_least: None, at_most: None });
    let meter = Arc::new(Meter::Size { bytes: NonZeroU64::MIN });
    rule.metered.push(MeteredLimit { limit: 0, meter, reserve });
    let limits = vec![shared(limit("all"))];
    let policy = Policy::new(dimensions, limits, vec![rule], MatchMode::FirstMatch).unwrap();
    let fields: Vec<_> = policy.request_fields().into_iter().collect();
    let expected = ["any", "cost", "first", "header", "key", "not", "text", "user", "when"]
        .map(|field| format!("x-{field}").into_boxed_str());
    assert_eq!(fields, expected);
}
