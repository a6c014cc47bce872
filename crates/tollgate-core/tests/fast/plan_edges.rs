//! Plans of policies in which a shortcut must not be taken, and policies that replace others.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tollgate_core::algo::{Anchor, FixedWindow, Schedule};
use tollgate_core::policy::{
    Ambiguity, Dimension, LimitBinding, LimitRef, MatchMode, Meter, MeteredLimit, PathPattern,
    PlainPlan, QuotasByValue, RequestMatch, ReservationAmount, ReservationSource, Rule,
    SubjectSource, WindowsByValue,
};
use tollgate_core::{
    Algorithm, Cost, Headers, KeyedHash, Limit, Millis, OnChange, Percent, Policy,
    RequestAttributes, Timestamp,
};

struct Zero;

impl KeyedHash for Zero {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

struct Fields<'a>(&'a [(&'a str, &'a [u8])]);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.value(name, index)
    }
}

fn attributes<'a>(path: &'a str, headers: &'a dyn Headers) -> RequestAttributes<'a> {
    let peer = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
    RequestAttributes { method: "GET", path, query: None, host: None, peer, headers }
}

fn header(name: &str) -> Dimension {
    let header = format!("x-{name}").into();
    Dimension { name: name.into(), source: SubjectSource::Header { header } }
}

fn parameter(name: &str) -> Dimension {
    let source = SubjectSource::PathParameter { parameter: name.into() };
    Dimension { name: name.into(), source }
}

fn window(quota: u64) -> Algorithm {
    let window = FixedWindow::new(quota, Millis::from_secs(60), Anchor::Calendar).unwrap();
    Algorithm::FixedWindow(window)
}

fn limit(name: &str) -> Limit {
    Limit::new(name, window(9)).unwrap()
}

fn used(limit: usize, cost: u64) -> LimitRef {
    LimitRef { limit, cost: Cost::up_to(cost) }
}

fn rule(path: &str, has: &[usize], limits: Vec<LimitRef>) -> Rule {
    let paths = vec![PathPattern::parse(path).unwrap()];
    let matches = RequestMatch { paths, has: has.to_vec(), ..RequestMatch::default() };
    Rule::new(path, matches, limits)
}

fn policy(dimensions: Vec<Dimension>, limits: Vec<(Limit, usize)>, rules: Vec<Rule>) -> Policy {
    let binding = |(limit, per)| LimitBinding { limit: Arc::new(limit), per: vec![per] };
    let limits = limits.into_iter().map(binding).collect();
    Policy::new(dimensions, limits, rules, MatchMode::FirstMatch).unwrap()
}

/// A plain plan compares a path parameter for each rule, because the rules have different patterns.
#[test]
fn a_parameter_that_one_rule_lacks_is_present_in_the_next_one() {
    let rules = vec![
        rule("/{other}/**", &[0], vec![used(0, 1)]),
        rule("/{tenant}/**", &[0], vec![used(0, 2)]),
    ];
    let policy = policy(vec![parameter("tenant")], vec![(limit("each"), 0)], rules);
    let (request, mut plain) = (attributes("/acme/a", &()), PlainPlan::default());
    assert!(policy.plan_plain(&request, &Zero, &mut plain));
    let costs: Vec<_> = plain.charges().iter().map(|charge| charge.cost.get()).collect();
    assert_eq!(costs, [2]);
    assert_eq!(plain.charges(), policy.plan(&request, &Zero).enforced);
}

/// The subject of a route or of a parameter is not the client's address, although a prepared
/// charge can be for the address.
#[test]
fn each_prepared_charge_has_the_subject_of_its_own_dimension() {
    let address = SubjectSource::ClientAddress { ipv4_prefix: 32, ipv6_prefix: 64 };
    let network = SubjectSource::ClientAddress { ipv4_prefix: 24, ipv6_prefix: 64 };
    let sources = [("address", address), ("network", network), ("route", SubjectSource::Route)];
    let dimensions = sources.map(|(name, source)| Dimension { name: name.into(), source });
    let limits = (0..3).map(|index| (limit(&index.to_string()), index)).collect();
    let rules = vec![rule("/**", &[], (0..3).map(|index| used(index, 1)).collect())];
    let policy = policy(dimensions.into(), limits, rules);
    let (request, mut plain) = (attributes("/a", &()), PlainPlan::default());
    assert!(policy.plan_plain(&request, &Zero, &mut plain));
    let subjects: Vec<_> = plain.charges().iter().map(|one| one.subject.to_string()).collect();
    assert_eq!(subjects, ["address=192.0.2.7", "network=192.0.2.0/24", "route=/**"]);
    assert_eq!(plain.charges(), policy.plan(&request, &Zero).enforced);
}

/// A rule that uses a limit twice has one charge on it.
#[test]
fn a_limit_that_a_rule_uses_twice_is_charged_once() {
    let rules = vec![rule("/**", &[], vec![used(0, 1), used(0, 2)])];
    let policy = policy(vec![header("user")], vec![(limit("each"), 0)], rules);
    let headers = Fields(&[("x-user", b"ann")]);
    let (request, mut plain) = (attributes("/a", &headers), PlainPlan::default());
    assert!(policy.plan_plain(&request, &Zero, &mut plain));
    let costs: Vec<_> = plain.charges().iter().map(|charge| charge.cost.get()).collect();
    assert_eq!(costs, [3]);
    assert_eq!(plain.charges(), policy.plan(&request, &Zero).enforced);
}

/// A request is not simple if it is ambiguous, or if a limit is not enforced for all subjects. This
/// holds for prepared charges and for others.
#[test]
fn a_plain_plan_has_no_doubts_and_no_trials() {
    for (has_refund, is_enforced) in [(false, true), (false, false), (true, true), (true, false)] {
        let percent = if is_enforced { Percent::ALL } else { Percent::new(50).unwrap() };
        let limits = vec![(limit("each").with_enforced(percent), 0)];
        let mut rule = rule("/**", &[], vec![used(0, 1)]);
        if has_refund {
            rule.refund = Some(Arc::new([404].into_iter().collect()));
        }
        let policy = policy(vec![header("user")], limits, vec![rule]);
        for (path, is_clear) in [("/a/b", true), ("/a%2fb", false)] {
            let headers = Fields(&[("x-user", b"ann")]);
            let request = attributes(path, &headers);
            let is_plain = policy.plan_plain(&request, &Zero, &mut PlainPlan::default());
            assert_eq!(is_plain, is_clear && is_enforced, "{path} {has_refund} {is_enforced}");
            let ambiguity = (!is_clear).then_some(Ambiguity::EncodedSlash);
            assert_eq!(policy.plan(&request, &Zero).ambiguity, ambiguity);
        }
    }
}

#[test]
fn a_request_names_the_units_to_reserve_within_bounds() {
    let source = ReservationSource::Header { field: "x-tokens".into() };
    let (at_least, at_most) = (Some(Cost::up_to(3)), Some(Cost::up_to(8)));
    let reserve = Some(ReservationAmount { source, at_least, at_most });
    let meter = Arc::new(Meter::Time { each: Millis::new(1) });
    let mut rule = rule("/**", &[], vec![used(0, 4)]);
    rule.metered.push(MeteredLimit { limit: 0, meter, reserve });
    let policy = policy(vec![header("user")], vec![(limit("each"), 0)], vec![rule]);
    for (tokens, reserved) in [("5", 5), ("1", 3), ("0", 3), ("20", 8), ("many", 4), ("", 4)] {
        let fields = [("x-user", &b"ann"[..]), ("x-tokens", tokens.as_bytes())];
        let plan = policy.plan(&attributes("/a", &Fields(&fields)), &Zero);
        let charge = &plan.enforced[0];
        let estimates: Vec<_> = charge.estimates.iter().map(|one| one.reserved.get()).collect();
        assert_eq!((charge.cost.get(), estimates), (reserved, vec![reserved]), "{tokens:?}");
    }
}

/// Each quota takes over the usage of the quota that the same value had before.
#[test]
fn the_quota_of_each_value_replaces_the_quota_of_this_value() {
    let scaled = |quotas: [u64; 3]| {
        let each = Limit::new("each", window(quotas[0])).unwrap();
        let each = each.with_on_change(OnChange::Scale);
        let of = |value, quota| Arc::new(each.for_value(value, quota, None).unwrap());
        let by_value = vec![of("free", quotas[1]), of("pro", quotas[2])];
        let by_value = QuotasByValue::new(0, 1, by_value).unwrap();
        let dimensions = vec![header("user"), header("plan")];
        let policy = policy(dimensions, vec![(each, 0)], Vec::new());
        policy.with_quotas(vec![by_value]).unwrap()
    };
    let now = Timestamp::from_millis(1_700_000_000_000);
    let replaced = scaled([5, 6, 7]).replacing(&scaled([50, 60, 70]), now);
    let each = &replaced.limits()[0].limit;
    let by_value = replaced.quotas_of(each).unwrap().limits();
    let former = |limit: &Arc<Limit>| limit.predecessor(now).map(Limit::capacity);
    assert_eq!(former(each), Some(50));
    assert_eq!(by_value.iter().map(former).collect::<Vec<_>>(), [Some(60), Some(70)]);
}

/// Windows that were opened before a reload stay open until their end, whatever value of the
/// request selects the windows and the quota.
#[test]
fn the_windows_of_each_value_keep_the_longer_windows_of_the_limit_before() {
    let with = |seconds: u64| {
        let schedule = |seconds| Schedule::ending(Timestamp::EPOCH, Millis::from_secs(seconds));
        let window = FixedWindow::scheduled(5, schedule(seconds)).unwrap();
        let each = Limit::new("each", Algorithm::FixedWindow(window)).unwrap();
        let pro = Arc::new(each.for_value("pro", 50, None).unwrap());
        let dimensions = ["user", "plan", "day"].map(header).into();
        let rules = vec![rule("/**", &[], vec![used(0, 1)])];
        let policy = policy(dimensions, vec![(each, 0)], rules);
        let quotas = QuotasByValue::new(0, 1, vec![pro]).unwrap();
        let windows = vec![("15".into(), schedule(60))];
        let windows = WindowsByValue::new(0, 2, windows).unwrap();
        policy.with_quotas(vec![quotas]).unwrap().with_windows(vec![windows]).unwrap()
    };
    let now = Timestamp::from_millis(1_700_000_000_000);
    let replaced = with(60).replacing(&with(3_600), now);
    for (plan, day) in [("", ""), ("pro", ""), ("", "15"), ("pro", "15")] {
        let fields = [("x-plan", plan.as_bytes()), ("x-day", day.as_bytes())];
        let plans = [with(60), replaced.clone()]
            .map(|policy| policy.plan(&attributes("/", &Fields(&fields)), &Zero).enforced);
        let [alone, replacing] = plans.map(|charges| charges[0].limit.skew_tolerance().get());
        assert_eq!((alone, replacing), (5_000, 5_000 + 3_540_000), "{plan:?} {day:?}");
    }
}
