//! Tests of adaptive bounds. A bound always stays between its minimum and its maximum. A bound
//! rises while there is capacity, and falls under overload.

use std::num::NonZeroU32;

use proptest::prelude::*;
use tollgate::model::policy::shedding::{AdaptiveAlgorithm, AdaptiveBound};
use tollgate::model::{Millis, Timestamp};
use tollgate::shed::{Adaptive, Sample, SampleOutcome};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const AIMD: AdaptiveAlgorithm = AdaptiveAlgorithm::Aimd { timeout: Millis::new(100) };

fn adaptive(algorithm: AdaptiveAlgorithm, min: u32, max: u32) -> Adaptive {
    let [min, max] = [min, max].map(|end| NonZeroU32::new(end).unwrap());
    Adaptive::new(AdaptiveBound { algorithm, min, max })
}

fn served(micros: u64, in_flight: u32) -> Sample {
    Sample { micros, in_flight, outcome: SampleOutcome::Served }
}

/// Observes `seconds` seconds of responses, 100 per second, that take `micros` each. The bound is
/// fully used.
fn seconds(bound: &mut Adaptive, from: Timestamp, seconds: u64, micros: u64) -> Timestamp {
    for step in 0..seconds * 100 {
        let now = from.after(Millis::new(step * 10));
        let in_flight = bound.get().get();
        bound.observe(now, served(micros, in_flight));
    }
    from.after(Millis::from_secs(seconds))
}

fn samples() -> impl Strategy<Value = Vec<(u64, Sample)>> {
    let micros = prop_oneof![0..1_000_000_u64, Just(0), Just(u64::MAX)];
    let outcome =
        prop_oneof![3 => Just(SampleOutcome::Served), 1 => Just(SampleOutcome::Overloaded)];
    let in_flight = prop_oneof![0..300_u32, Just(u32::MAX)];
    let sample = (micros, in_flight, outcome).prop_map(|(micros, in_flight, outcome)| Sample {
        micros,
        in_flight,
        outcome,
    });
    prop::collection::vec((0..2_000_u64, sample), 1..400)
}

proptest! {
    #[test]
    fn whatever_is_answered_they_stay_between_their_ends(
        samples in samples(),
        (min, max) in (1..200_u32, 0..200_u32).prop_map(|(min, more)| (min, min + more)),
        is_aimd in any::<bool>(),
    ) {
        let algorithm = if is_aimd { AIMD } else { AdaptiveAlgorithm::Gradient };
        let mut bound = adaptive(algorithm, min, max);
        let mut now = START;
        for (apart, sample) in samples {
            // Some clocks step back.
            now = if apart == 0 { START } else { now.after(Millis::new(apart)) };
            bound.observe(now, sample);
            prop_assert!((min..=max).contains(&bound.get().get()), "{bound:?}");
        }
    }
}

#[test]
fn steady_answers_let_both_grow_to_their_most() {
    for algorithm in [AIMD, AdaptiveAlgorithm::Gradient] {
        let mut bound = adaptive(algorithm, 2, 50);
        assert_eq!(bound.get().get(), 2);
        seconds(&mut bound, START, 30, 20_000);
        assert_eq!(bound.get().get(), 50, "{algorithm:?}");
    }
}

#[test]
fn what_is_not_in_use_reports_nothing() {
    for algorithm in [AIMD, AdaptiveAlgorithm::Gradient] {
        let mut bound = adaptive(algorithm, 10, 50);
        (0..10_000).for_each(|step| {
            bound.observe(START.after(Millis::new(step * 10)), served(20_000, 4));
        });
        assert_eq!(bound.get().get(), 10, "{algorithm:?}");
    }
}

#[test]
fn answers_that_take_many_times_as_long_let_the_gradient_shrink() {
    let mut bound = adaptive(AdaptiveAlgorithm::Gradient, 2, 100);
    let now = seconds(&mut bound, START, 60, 20_000);
    assert_eq!(bound.get().get(), 100);
    let now = seconds(&mut bound, now, 5, 400_000);
    let shrunk = bound.get().get();
    assert!(shrunk < 30, "{shrunk}");
    seconds(&mut bound, now, 60, 20_000);
    assert_eq!(bound.get().get(), 100, "and it comes back");
}

#[test]
fn latency_within_the_tolerance_is_no_reason_to_shrink() {
    let mut bound = adaptive(AdaptiveAlgorithm::Gradient, 2, 100);
    let now = seconds(&mut bound, START, 60, 20_000);
    seconds(&mut bound, now, 5, 29_000);
    assert_eq!(bound.get().get(), 100);
}

#[test]
fn one_overload_takes_a_tenth_however_many_report_of_it() {
    let overloaded = Sample { micros: 1_000, in_flight: 100, outcome: SampleOutcome::Overloaded };
    for sample in [overloaded, served(101_000, 100)] {
        let mut bound = adaptive(AIMD, 2, 100);
        let now = seconds(&mut bound, START, 10, 20_000);
        assert_eq!(bound.get().get(), 100);
        (0..50).for_each(|_| bound.observe(now, sample));
        assert_eq!(bound.get().get(), 90);
        bound.observe(now.after(Millis::new(250)), sample);
        assert_eq!(bound.get().get(), 81);
    }
}

#[test]
fn errors_that_come_fast_are_no_fast_service() {
    let mut bound = adaptive(AdaptiveAlgorithm::Gradient, 2, 100);
    let overloaded = Sample { micros: 10, in_flight: 100, outcome: SampleOutcome::Overloaded };
    (0..10_000).for_each(|step| bound.observe(START.after(Millis::new(step * 10)), overloaded));
    assert_eq!(bound, adaptive(AdaptiveAlgorithm::Gradient, 2, 100));
}
