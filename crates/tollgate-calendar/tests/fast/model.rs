//! Decisions in calendar windows, compared with the reference model.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::civil::date;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use tollgate_calendar::{Period, Weekday, schedule};
use tollgate_conformance::Cells;
use tollgate_conformance::trace::{Call, LimitCharge, Op, Trace, run_trace_by};
use tollgate_core::algo::FixedWindow;
use tollgate_core::{Algorithm, Cost, Limit, Timestamp};

const ZONES: [&str; 5] =
    ["Europe/Berlin", "America/New_York", "America/Havana", "Australia/Lord_Howe", "UTC"];

/// Days on which clocks change or months end, some of them in leap years.
const DAYS: [(i16, i8, i8); 8] = [
    (2024, 2, 28),
    (2024, 3, 30),
    (2025, 2, 27),
    (2026, 3, 7),
    (2026, 3, 28),
    (2026, 10, 24),
    (2026, 10, 31),
    (2027, 12, 30),
];

fn periods() -> impl Strategy<Value = Period> {
    prop_oneof![
        Just(Period::Day),
        Just(Period::Week { first: Weekday::Sunday }),
        (1_u8..=31).prop_map(|first_day| Period::Month { first_day }),
        Just(Period::Year),
    ]
}

/// Returns times in order, from `day` on for about four days, in steps of up to six hours.
fn times(day: (i16, i8, i8), steps: &[u64]) -> Vec<Timestamp> {
    let start = date(day.0, day.1, day.2).to_zoned(TimeZone::UTC).unwrap().timestamp();
    let mut now = u64::try_from(start.as_millisecond()).unwrap();
    let next = |step: &u64| {
        now += step;
        Timestamp::from_millis(now)
    };
    steps.iter().map(next).collect()
}

/// Runs a future of a store that never waits.
fn finished<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the store waits"),
    }
}

proptest! {
    #[test]
    fn every_decision_is_the_models(
        windows in prop::collection::vec((periods(), prop::sample::select(&ZONES[..])), 1..=3),
        day in prop::sample::select(&DAYS[..]),
        calls in prop::collection::vec((0_u64..21_600_000, 1_u64..=3, any::<bool>()), 1..60),
    ) {
        let limits: Vec<Limit> = windows
            .iter()
            .enumerate()
            .map(|(index, (period, zone))| {
                let windows = schedule(*period, zone).unwrap();
                let algorithm = FixedWindow::scheduled(5, windows).map(Algorithm::FixedWindow);
                Limit::new(&format!("limit{index}"), algorithm.unwrap()).unwrap()
            })
            .collect();
        let steps: Vec<u64> = calls.iter().map(|(step, ..)| *step).collect();
        let ops = times(day, &steps).into_iter().zip(&calls).map(|(now, (_, cost, peeks))| {
            let take = |limit| LimitCharge { limit, subject: 0, cost: Cost::new(*cost).unwrap() };
            let takes = (0..limits.len()).map(take).collect();
            Op { now, call: if *peeks { Call::Peek(takes) } else { Call::Charge(takes) } }
        });
        let trace = Trace { seed: 0, ops: ops.collect(), limits };
        let store = Cells::default();
        finished(run_trace_by(&store, &trace, "calendar", || Duration::ZERO)).unwrap();
    }
}
