//! Plans that reuse memory contain the charges of their own request, and not those of the request
//! before.

use std::sync::Arc;

use tollgate_core::algo::{Anchor, FixedWindow, Schedule, ScheduledWindow, WindowSchedule};
use tollgate_core::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, PlainPlan, QuotasByValue, RequestMatch, Rule,
    SubjectSource, WindowsByValue,
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

struct Fields<const N: usize>([(&'static str, &'static [u8]); N]);

impl<const N: usize> Headers for Fields<N> {
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
