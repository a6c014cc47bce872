//! A policy refers only to what it has, and returns what it was made of.

use std::num::NonZeroU32;
use std::sync::Arc;

use tollgate_core::algo::{Anchor, FixedWindow, Schedule, SlidingLog, TokenBucket};
use tollgate_core::key::KeyedHash;
use tollgate_core::policy::descriptors::{
    Allowance, DescriptorLevel, DescriptorRule, Domain, Node, NodeValue, TimeUnit,
};
use tollgate_core::policy::quotas::MAX_QUOTA_VALUES;
use tollgate_core::policy::shedding::{
    FLEET_NONCRITICAL, FLEET_POOL, FleetShedding, InFlightBound, ShedMode, WorkerShedding,
};
use tollgate_core::policy::windows::MAX_WINDOW_VALUES;
use tollgate_core::policy::{
    AddressHeader, Attribute, Condition, Dimension, Forwarding, JsonPointer, LimitBinding,
    LimitRef, MAX_CONDITION_DEPTH, MatchMode, Meter, MeteredLimit, Named, PathCase, PathOptions,
    PathPattern, QuotasByValue, RequestMatch, ReservationAmount, ReservationSource,
    ResponseSettings, Rule, Shedding, SubjectSource, TenantLookup, Text, UnreadBodies,
    WindowsByValue, WrittenCondition,
};
use tollgate_core::{
    Algorithm, Cost, Limit, Millis, OnChange, Policy, Priority, RequestAttributes, Timestamp,
};

struct Zero;

impl KeyedHash for Zero {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

fn dimension(name: &str, source: SubjectSource) -> Dimension {
    Dimension { name: name.into(), source }
}

fn header(name: &str) -> Dimension {
    dimension(name, SubjectSource::Header { header: format!("x-{name}").into() })
}

fn json(name: &str) -> SubjectSource {
    let pointer = JsonPointer::parse(&format!("/{name}")).unwrap();
    SubjectSource::Json { pointer, unread: UnreadBodies::Pass }
}

fn limit(name: &str) -> Limit {
    let window = FixedWindow::new(10, Millis::from_secs(60), Anchor::Calendar).unwrap();
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
}

fn binding(limit: Limit, per: &[usize]) -> LimitBinding {
    LimitBinding { limit: Arc::new(limit), per: per.to_vec() }
}

fn used(limit: usize) -> LimitRef {
    LimitRef { limit, cost: Cost::ONE }
}

fn rule(matches: RequestMatch, limits: &[usize]) -> Rule {
    Rule::new("rule", matches, limits.iter().copied().map(used).collect())
}

fn new(dimensions: &[Dimension], limits: &[LimitBinding], rules: &[Rule]) -> Option<Policy> {
    Policy::new(dimensions.to_vec(), limits.to_vec(), rules.to_vec(), MatchMode::FirstMatch)
}

/// Returns a policy with five dimensions, the limit `each` of every user, and the limit `all` that
/// all users share.
fn policy() -> Policy {
    let dimensions = ["user", "plan", "day", "tenant", "unused"].map(header);
    let limits = [binding(limit("each"), &[0]), binding(limit("all"), &[])];
    new(&dimensions, &limits, &[rule(RequestMatch::default(), &[0, 1])]).unwrap()
}

fn quotas(limit: usize, dimension: usize, base: &Limit) -> QuotasByValue {
    let pro = Arc::new(base.for_value("pro", 20, None).unwrap());
    QuotasByValue::new(limit, dimension, vec![pro]).unwrap()
}

fn windows(limit: usize, dimension: usize) -> WindowsByValue {
    let schedule = Schedule::ending(Timestamp::from_millis(9), Millis::new(5));
    WindowsByValue::new(limit, dimension, vec![("15".into(), schedule)]).unwrap()
}

#[test]
fn a_policy_refers_only_to_what_it_has() {
    let (dimensions, limits) = ([header("user")], [binding(limit("each"), &[0])]);
    let is_valid = |matches| new(&dimensions, &limits, &[rule(matches, &[0])]).is_some();
    let none = RequestMatch::default;
    assert!(is_valid(none()));
    assert!(new(&dimensions, &[binding(limit("each"), &[1])], &[]).is_none());
    assert!(new(&dimensions, &limits, &[rule(none(), &[1])]).is_none());
    for (index, is_known) in [(0, true), (1, false)] {
        let when = |condition| {
            let written = WrittenCondition { text: "".into(), condition };
            RequestMatch { when: Some(Box::new(written)), ..none() }
        };
        let attribute = Attribute::Dimension(index);
        let text = Text::Of(attribute.clone());
        for matches in [
            RequestMatch { has: vec![index], ..none() },
            RequestMatch { lacks: vec![0, index], ..none() },
            when(Condition::Has(attribute)),
            when(Condition::Equal(text, Text::Of(Attribute::Dimension(0)))),
        ] {
            assert_eq!(is_valid(matches.clone()), is_known, "{matches:?}");
            assert_eq!(is_valid(RequestMatch { any: vec![matches.clone()], ..none() }), is_known);
            assert_eq!(is_valid(RequestMatch { not: vec![matches], ..none() }), is_known);
        }
    }
}

#[test]
fn a_rule_meters_only_limits_that_it_uses() {
    let limits = [binding(limit("one"), &[]), binding(limit("other"), &[])];
    let metered = |index| {
        let meter = Arc::new(Meter::Time { each: Millis::new(1) });
        let mut rule = rule(RequestMatch::default(), &[1]);
        rule.metered.push(MeteredLimit { limit: index, meter, reserve: None });
        new(&[], &limits, &[rule]).is_some()
    };
    assert!(metered(1) && !metered(0));
}

#[test]
fn conditions_are_nested_up_to_a_bound() {
    let nested = |depth| {
        let deeper = |inner: RequestMatch, level: usize| match level % 2 {
            0 => RequestMatch { any: vec![inner], ..RequestMatch::default() },
            _ => RequestMatch { not: vec![inner], ..RequestMatch::default() },
        };
        let matches = (0..depth).fold(RequestMatch::default(), deeper);
        new(&[], &[], &[rule(matches, &[])]).is_some()
    };
    assert!(nested(MAX_CONDITION_DEPTH) && !nested(MAX_CONDITION_DEPTH + 1));
}

#[test]
fn the_paths_of_nested_conditions_are_found_and_ignore_case_too() {
    let at = |path| RequestMatch {
        paths: vec![PathPattern::parse(path).unwrap()],
        ..RequestMatch::default()
    };
    let matches = RequestMatch { any: vec![at("/Any/*")], not: vec![at("/Any/Not")], ..at("/**") };
    let texts: Vec<_> = matches.path_patterns().into_iter().map(PathPattern::as_str).collect();
    assert_eq!(texts, ["/**", "/Any/*", "/Any/Not"]);
    let policy = new(&[], &[], &[rule(matches, &[])]).unwrap();
    let ignoring = PathOptions { case: PathCase::Ignore, ..PathOptions::default() };
    for (options, matching) in [(PathOptions::default(), [true, false]), (ignoring, [true, true])] {
        let policy = policy.clone().with_paths(options);
        assert_eq!(policy.paths(), options);
        let is_matched = |path| !policy.plan(&attributes(path), &Zero).rules.is_empty();
        assert_eq!(["/Any/x", "/any/x"].map(is_matched), matching);
        assert!(!is_matched("/any/not"));
    }
}

fn attributes(path: &str) -> RequestAttributes<'_> {
    RequestAttributes { method: "GET", path, query: None, host: None, peer: None, headers: &() }
}

#[test]
fn a_policy_returns_its_parts() {
    let policy = policy();
    let names: Vec<_> = policy.dimensions().iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["user", "plan", "day", "tenant", "unused"]);
    assert_eq!(
        policy.limits().iter().map(|it| it.limit.name()).collect::<Vec<_>>(),
        ["each", "all"]
    );
    assert_eq!(policy.rules().iter().map(|it| &*it.name).collect::<Vec<_>>(), ["rule"]);
    let forwarding =
        Forwarding { header: AddressHeader::Forwarded, hops: Some(2), ..Forwarding::default() };
    let answers = ResponseSettings { refuse_status: 503, ..ResponseSettings::default() };
    let set = policy.with_forwarding(forwarding.clone()).with_answers(answers);
    assert_eq!(set.forwarding(), &forwarding);
    assert_eq!(set.answers().refuse_status, 503);
    assert_eq!((set.rules().len(), set.limits().len(), set.domains().len()), (1, 2, 0));
}

#[test]
fn a_counter_depends_on_the_dimensions_that_select_it() {
    let policy = policy();
    let base = Arc::clone(&policy.limits()[0].limit);
    let policy = policy.with_quotas(vec![quotas(0, 1, &base)]).unwrap();
    let policy = policy.with_windows(vec![windows(0, 2)]).unwrap();
    let uses = |policy: &Policy, limit: usize| {
        let binding = &policy.limits()[limit];
        ["user", "plan", "day", "tenant", "unused", "none"].map(|it| policy.uses_value(binding, it))
    };
    assert_eq!(uses(&policy, 0), [true, true, true, false, false, false]);
    assert_eq!(uses(&policy, 1), [false; 6]);
    let policy = policy.with_tenants(3).unwrap();
    assert_eq!(uses(&policy, 0), [true, true, true, true, false, false]);
    assert_eq!(uses(&policy, 1), [false, false, false, true, false, false]);
}

#[test]
fn bodies_are_read_only_for_values_in_them() {
    let of = |dimension| new(&[dimension], &[], &[]).unwrap().reads_bodies();
    assert!(!of(header("user")));
    assert!(of(dimension("model", json("model"))));
    let reserve = |source| {
        let reserve = ReservationAmount { source, at_least: None, at_most: None };
        let meter = Arc::new(Meter::Time { each: Millis::new(1) });
        let mut rule = rule(RequestMatch::default(), &[0]);
        rule.metered.push(MeteredLimit { limit: 0, meter, reserve: Some(reserve) });
        new(&[header("user")], &[binding(limit("all"), &[])], &[rule]).unwrap().reads_bodies()
    };
    let pointer = JsonPointer::parse("/max_tokens").unwrap();
    assert!(reserve(ReservationSource::Json { pointer }));
    assert!(!reserve(ReservationSource::Header { field: "x-cost".into() }));
}

#[test]
fn quotas_by_value_have_one_limit_for_each_value() {
    let base = limit("each");
    let of = |value: &str| Arc::new(base.for_value(value, 20, None).unwrap());
    let quotas = QuotasByValue::new(0, 1, vec![of("pro"), of("free")]).unwrap();
    let values: Vec<_> = quotas.limits().iter().filter_map(|it| it.quota_value()).collect();
    assert_eq!((values, quotas.dimension()), (vec!["free", "pro"], Some(1)));
    assert!(!quotas.is_by_tenant());
    let by_tenant = QuotasByValue::by_tenant(0, None, vec![of("pro")]).unwrap();
    assert_eq!((by_tenant.dimension(), by_tenant.is_by_tenant()), (None, true));
    assert_eq!(by_tenant.of(b"pro").map(|it| it.capacity()), Some(20));
    assert_eq!(by_tenant.of(b"pr").map(|it| it.capacity()), None);
    assert!(QuotasByValue::new(0, 1, vec![of("pro"), of("pro")]).is_none());
    assert!(QuotasByValue::new(0, 1, vec![of("pro"), Arc::new(limit("each"))]).is_none());
    let many = |count: usize| (0..count).map(|value| of(&value.to_string())).collect::<Vec<_>>();
    assert!(QuotasByValue::new(0, 1, many(MAX_QUOTA_VALUES)).is_some());
    assert!(QuotasByValue::new(0, 1, many(MAX_QUOTA_VALUES + 1)).is_none());
}

#[test]
fn quotas_by_value_belong_to_one_limit_and_its_counters() {
    let base = Arc::clone(&policy().limits()[0].limit);
    let with = |quotas| policy().with_quotas(quotas).is_some();
    assert!(with(vec![quotas(0, 4, &base)]) && with(Vec::new()));
    assert!(with(vec![QuotasByValue::by_tenant(0, None, Vec::new()).unwrap()]));
    assert!(!with(vec![quotas(0, 5, &base)]), "a missing dimension");
    assert!(!with(vec![quotas(2, 1, &base)]), "a missing limit");
    assert!(!with(vec![quotas(0, 1, &base), quotas(0, 2, &base)]), "two of one limit");
    assert!(!with(vec![quotas(1, 1, &base)]), "the counters of another limit");
    let all = Arc::clone(&policy().limits()[1].limit);
    let both = policy().with_quotas(vec![quotas(1, 2, &all), quotas(0, 1, &base)]).unwrap();
    let dimension = |limit: &Limit| both.quotas_of(limit).unwrap().dimension();
    assert_eq!((dimension(&base), dimension(&all)), (Some(1), Some(2)));
    assert!(both.quotas_of(&limit("none")).is_none());
}

#[test]
fn windows_by_value_belong_to_one_fixed_window() {
    let with = |windows| policy().with_windows(windows);
    assert!(with(vec![windows(0, 4)]).is_some() && with(Vec::new()).is_some());
    assert!(with(vec![windows(0, 5)]).is_none(), "a missing dimension");
    assert!(with(vec![windows(2, 1)]).is_none(), "a missing limit");
    assert!(with(vec![windows(0, 1), windows(0, 2)]).is_none(), "two of one limit");
    let log = SlidingLog::new(5, Millis::from_secs(60)).unwrap();
    let log = binding(Limit::new("log", Algorithm::SlidingLog(log)).unwrap(), &[]);
    let log = new(&[header("day")], &[log], &[]).unwrap();
    assert!(log.with_windows(vec![windows(0, 0)]).is_none(), "no fixed window");
    let both = with(vec![windows(1, 2), windows(0, 1)]).unwrap();
    let dimension = |name: &str| both.windows_of(&limit(name)).map(WindowsByValue::dimension);
    assert_eq!(["each", "all", "none"].map(dimension), [Some(1), Some(2), None]);
    let schedule = Schedule::ending(Timestamp::from_millis(9), Millis::new(5));
    let many = |count: usize| {
        let days = (0..count).map(|day| (day.to_string().into(), schedule)).collect();
        WindowsByValue::new(0, 1, days).is_some()
    };
    assert!(many(MAX_WINDOW_VALUES) && !many(MAX_WINDOW_VALUES + 1));
    let twice = vec![("15".into(), schedule), ("15".into(), schedule)];
    assert!(WindowsByValue::new(0, 1, twice).is_none());
}

/// Rows in which the tenant `acme` has a quota of its own, and every other tenant has the plan
/// with the tenant's name.
#[derive(Debug)]
struct Rows;

impl TenantLookup for Rows {
    fn limit(
        &self,
        tenant: &[u8],
        base: &Arc<Limit>,
        plans: Option<&QuotasByValue>,
    ) -> Option<Arc<Limit>> {
        match tenant {
            b"acme" => Some(Arc::new(base.for_tenant(77, None).unwrap())),
            plan => plans.map(|plans| plans.of(plan).unwrap_or(base).clone()),
        }
    }
}

#[test]
fn the_row_of_a_tenant_selects_the_quota() {
    assert!(policy().with_tenants(5).is_none());
    assert!(policy().tenant_dimension().is_none());
    let without_rows = policy().with_tenants(4).unwrap();
    assert_eq!(&*without_rows.tenant_dimension().unwrap().name, "unused");
    let base = Arc::clone(&policy().limits()[0].limit);
    let pro = Arc::new(base.for_value("pro", 20, None).unwrap());
    let plans = QuotasByValue::by_tenant(0, Some(1), vec![pro]).unwrap();
    let without_rows = policy().with_quotas(vec![plans]).unwrap().with_tenants(3).unwrap();
    let with_rows = without_rows.clone().with_tenant_rows(Arc::new(Rows));
    let quota = |policy: &Policy, tenant, plan| {
        let subject = [("user", Some("ann")), ("tenant", tenant), ("plan", plan)];
        let named = Named { limit: "each", cost: Cost::ONE, subject: &subject };
        policy.plan_named([named], &Zero).unwrap().planned[0].limit.capacity()
    };
    for (tenant, plan, without, with) in [
        (None, None, 10, 10),
        (Some("acme"), None, 10, 77),
        (Some("pro"), None, 10, 20),
        (Some("free"), Some("pro"), 20, 10),
        (None, Some("pro"), 20, 20),
    ] {
        assert_eq!(quota(&without_rows, tenant, plan), without, "{tenant:?} {plan:?}");
        assert_eq!(quota(&with_rows, tenant, plan), with, "{tenant:?} {plan:?}");
    }
}

#[test]
fn a_replaced_limit_is_connected_with_the_limit_of_the_same_name_and_value() {
    let scaled = |quota: u64, pro: u64| {
        let window = FixedWindow::new(quota, Millis::from_secs(60), Anchor::Calendar).unwrap();
        let limit = Limit::new("each", Algorithm::FixedWindow(window)).unwrap();
        let limit = limit.with_on_change(OnChange::Scale);
        let pro = Arc::new(limit.for_value("pro", pro, None).unwrap());
        let limits = [binding(limit, &[0]), binding(self::limit("all"), &[])];
        let policy = new(&["user", "plan"].map(header), &limits, &[]).unwrap();
        policy.with_quotas(vec![QuotasByValue::new(0, 1, vec![pro]).unwrap()]).unwrap()
    };
    let now = Timestamp::from_millis(1_700_000_000_000);
    let replaced = scaled(5, 50).replacing(&scaled(7, 70), now);
    let former = |limit: &Limit| limit.predecessor(now).map(Limit::capacity);
    let each = &replaced.limits()[0].limit;
    assert_eq!((each.capacity(), former(each)), (5, Some(7)));
    let pro = &replaced.quotas_of(each).unwrap().limits()[0];
    assert_eq!((pro.capacity(), former(pro)), (50, Some(70)));
    assert_eq!(former(&replaced.limits()[1].limit), None);
}

/// The bug: a move between shards ended before the token buckets of a plan were full, because only
/// the default quotas were compared.
#[test]
fn the_counters_of_a_policy_last_as_long_as_those_of_its_slowest_quota() {
    let bucket = TokenBucket::new(10, Millis::from_secs(60), 1_000).unwrap();
    let slow = |seconds| {
        let window = FixedWindow::new(10, Millis::from_secs(seconds), Anchor::Calendar).unwrap();
        Algorithm::FixedWindow(window)
    };
    let limits = [
        binding(Limit::new("each", Algorithm::TokenBucket(bucket)).unwrap(), &[0]),
        binding(limit("all"), &[]),
    ];
    let with = |limits: &[LimitBinding]| new(&["user", "plan"].map(header), limits, &[]).unwrap();
    let seconds = |policy: &Policy| policy.longest_cell_lifetime().get() / 1_000;
    let (policy, skew) = (with(&limits), 5);
    assert_eq!(seconds(&policy), 6_000 + skew);
    let free = Arc::new(limits[0].limit.for_value("free", 1, None).unwrap());
    let free = QuotasByValue::new(0, 1, vec![free]).unwrap();
    assert_eq!(seconds(&policy.clone().with_quotas(vec![free]).unwrap()), 60_000 + skew);
    let days = vec![("15".into(), Schedule::ending(Timestamp::EPOCH, Millis::from_secs(86_400)))];
    let days = WindowsByValue::new(1, 1, days).unwrap();
    assert_eq!(seconds(&policy.with_windows(vec![days]).unwrap()), 86_400 + skew);
    let tried = binding(limit("all").with_candidate(slow(9_000)), &[]);
    assert_eq!(seconds(&with(&[limits[0].clone(), tried])), 9_000 + skew);
    assert_eq!(with(&[]).longest_cell_lifetime(), Millis::ZERO);
}

#[test]
fn only_limits_that_all_subjects_share_are_pools_of_the_fleet() {
    let fleet = |pool, noncritical| FleetShedding { mode: ShedMode::Enforce, pool, noncritical };
    let with =
        |fleet| policy().with_shedding(Shedding { fleet: Some(fleet), ..Shedding::default() });
    assert!(with(fleet(1, 0)).is_none() && with(fleet(0, 1)).is_none());
    assert!(with(fleet(1, 2)).is_none() && with(fleet(2, 1)).is_none());
    let set = with(fleet(1, 1)).unwrap();
    assert_eq!(set.shedding().fleet, Some(fleet(1, 1)));
    let pools = FleetShedding::limits(10, 3, Millis::from_secs(5)).unwrap();
    let policy = new(&[], &pools, &[]).unwrap();
    let names = |priority| {
        let plan = policy.fleet_plan(&fleet(0, 1), priority);
        assert!(plan.iter().all(|it| it.cost == Cost::ONE));
        let names = plan.iter().map(|it| (it.limit.name().to_owned(), it.limit.capacity()));
        names.collect::<Vec<_>>()
    };
    let (pool, noncritical) = ((FLEET_POOL.to_owned(), 10), (FLEET_NONCRITICAL.to_owned(), 7));
    assert_eq!(names(Priority::Critical), std::slice::from_ref(&pool));
    for priority in [Priority::Test, Priority::Read, Priority::Write] {
        assert_eq!(names(priority), [pool.clone(), noncritical.clone()]);
    }
    assert!(FleetShedding::limits(3, 3, Millis::from_secs(5)).is_err());
}

#[test]
fn the_mode_of_all_shedding_weakens_that_of_each_shedder() {
    use ShedMode::{Enforce, Off, Shadow};
    let in_flight = Some(InFlightBound::Fixed(NonZeroU32::new(9).unwrap()));
    for (all, one, effective) in [
        (Enforce, Enforce, Some(Enforce)),
        (Enforce, Shadow, Some(Shadow)),
        (Shadow, Enforce, Some(Shadow)),
        (Shadow, Off, None),
        (Off, Enforce, None),
    ] {
        let fleet = FleetShedding { mode: one, pool: 1, noncritical: 2 };
        let worker = WorkerShedding { mode: one, in_flight, ..WorkerShedding::default() };
        let shedding = Shedding { mode: all, fleet: Some(fleet), worker: Some(worker) };
        let fleet = effective.map(|mode| FleetShedding { mode, ..fleet });
        let worker = effective.map(|mode| WorkerShedding { mode, ..worker });
        assert_eq!((shedding.fleet(), shedding.worker()), (fleet, worker), "{all:?} {one:?}");
    }
    let none = Shedding::default();
    assert_eq!((none.fleet(), none.worker()), (None, None));
}

#[test]
fn a_unit_of_time_has_a_length() {
    use TimeUnit::{Day, Hour, Minute, Month, Second, Week, Year};
    let lengths = [
        (Second, 1),
        (Minute, 60),
        (Hour, 3_600),
        (Day, 86_400),
        (Week, 604_800),
        (Month, 2_592_000),
        (Year, 31_536_000),
    ];
    for (unit, seconds) in lengths {
        assert_eq!(unit.window(), Millis::from_secs(seconds));
        assert_eq!(TimeUnit::of(unit.window()), Some(unit));
        assert_eq!(TimeUnit::of(Millis::from_secs(seconds + 1)), None);
    }
}

#[test]
fn domains_have_names_of_their_own_and_complete_trees() {
    let node = |key: &str, limit| Node {
        key: key.into(),
        value: NodeValue::Any,
        rule: Some(DescriptorRule::new(Allowance::Limit(limit))),
        children: DescriptorLevel::default(),
    };
    let level = |nodes| DescriptorLevel::new(nodes).unwrap();
    let (empty, full) = (level(Vec::new()), level(vec![node("b", 0), node("a", 1)]));
    assert!(empty.is_empty() && !full.is_empty());
    assert_eq!(full.nodes().iter().map(|it| &*it.key).collect::<Vec<_>>(), ["b", "a"]);
    let domain = |name: &str, limit| Domain {
        name: name.into(),
        tree: level(vec![node("a", limit)]),
        ..Domain::default()
    };
    let with = |domains| policy().with_descriptors(domains);
    let two = with(vec![domain("z", 1), domain("a", 0)]).unwrap();
    assert_eq!(two.domains().iter().map(|it| &*it.name).collect::<Vec<_>>(), ["a", "z"]);
    assert!(two.descriptors("z").is_some() && two.descriptors("b").is_none());
    assert!(with(vec![domain("a", 0), domain("a", 1)]).is_none());
    assert!(with(vec![domain("a", 2)]).is_none());
}
