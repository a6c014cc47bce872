//! Tests of a worker: its slots, its bound, the loads that it measures, and its switches.

use std::num::NonZeroU32;
use std::sync::Arc;

use tollgate::model::policy::shedding::{
    AdaptiveAlgorithm, AdaptiveBound, InFlightBound, ShedMode, Shedding, WorkerShedding,
};
use tollgate::model::{Millis, Timestamp};
use tollgate::shed::{InFlightSlot, MAX_LEVEL, Priority, ShedCause, ShedCount, TICK, Worker};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn shedding(worker: WorkerShedding) -> Shedding {
    Shedding { worker: Some(worker), ..Shedding::default() }
}

pub(crate) fn at_most(in_flight: u32) -> WorkerShedding {
    let bound = InFlightBound::Fixed(NonZeroU32::new(in_flight).unwrap());
    WorkerShedding { in_flight: Some(bound), ..WorkerShedding::default() }
}

fn at(ticks: u64) -> Timestamp {
    START.after(Millis::new(ticks * TICK.get()))
}

fn hold(worker: &Arc<Worker>, now: Timestamp, count: usize) -> Vec<InFlightSlot> {
    let enter = |_| worker.enter(now, Priority::Critical).unwrap().unwrap();
    (0..count).map(enter).collect()
}

/// Returns the non-zero counts.
fn counted(worker: &Worker) -> Vec<ShedCount> {
    worker.counts().read().filter(|count| count.shed + count.shadowed > 0).collect()
}

#[test]
fn above_its_ceiling_only_critical_requests_enter() {
    let worker = Arc::new(Worker::new(&shedding(at_most(3))));
    let held = hold(&worker, START, 6);
    for priority in [Priority::Test, Priority::Read, Priority::Write] {
        let shed = worker.enter(START, priority).unwrap_err();
        assert_eq!((shed.priority, shed.cause), (priority, ShedCause::InFlight));
        assert!(shed.retry_after >= Millis::from_secs(1));
    }
    let critical = hold(&worker, START, 1);
    assert_eq!(worker.status().in_flight, 7);
    drop((held, critical));
    assert_eq!(worker.status().in_flight, 0);
    assert!(worker.enter(START, Priority::Test).is_ok());
    assert_eq!(counted(&worker).len(), 3);
}

#[test]
fn what_lasts_too_long_is_shed_by_its_cause() {
    type Tell = fn(&Worker, Timestamp, u64);
    let bound = Some(Millis::new(50));
    let cases: [(WorkerShedding, Tell, ShedCause); 2] = [
        (
            WorkerShedding { queue_delay: bound, ..WorkerShedding::default() },
            |worker, now, micros| worker.observe_queue_delay(now, micros),
            ShedCause::QueueDelay,
        ),
        (
            WorkerShedding { loop_delay: bound, ..WorkerShedding::default() },
            |worker, now, micros| worker.observe_loop_delay(now, micros),
            ShedCause::LoopDelay,
        ),
    ];
    for (settings, observe, cause) in cases {
        let worker = Arc::new(Worker::new(&shedding(settings)));
        for tick in 0..25 {
            observe(&worker, at(tick), 50_000);
            worker.update(at(tick));
        }
        assert_eq!(worker.status().level, 0, "as much as is bearable");
        for tick in 25..50 {
            observe(&worker, at(tick), 51_000);
            worker.update(at(tick));
        }
        let shed = worker.enter(at(50), Priority::Test).unwrap_err();
        assert_eq!(shed.cause, cause);
        assert!(worker.enter(at(50), Priority::Write).is_ok());
        // Without further observations the level falls slowly to zero.
        worker.update(at(60));
        assert!(worker.status().level > 0);
        worker.update(at(60 + 10 + 200));
        assert_eq!(worker.status().level, 0);
    }
}

#[test]
fn in_shadow_mode_everything_passes_and_is_counted_as_in_earnest() {
    let run = |mode| {
        let settings = WorkerShedding { mode, ..at_most(2) };
        let worker = Arc::new(Worker::new(&shedding(settings)));
        let mut held = Vec::new();
        let mut refused = 0;
        for tick in 0..200_u64 {
            let priority = Priority::ALL[(tick % 3) as usize];
            match worker.enter(at(tick), priority) {
                Ok(slot) => held.extend(slot),
                Err(_) => refused += 1,
            }
            if tick % 4 == 0 && !held.is_empty() {
                drop(held.remove(0));
            }
        }
        let counts: Vec<u64> =
            counted(&worker).iter().map(|count| count.shed + count.shadowed).collect();
        (worker.status(), counts, refused)
    };
    let (enforced, shed, refused) = run(ShedMode::Enforce);
    let (shadowed, would, passed) = run(ShedMode::Shadow);
    assert_eq!((enforced, shed), (shadowed, would));
    assert!(refused > 0);
    assert_eq!(passed, 0);
}

#[test]
fn the_switch_over_all_overrules_the_worker_and_holds_while_requests_run() {
    let enforcing = shedding(at_most(1));
    let worker = Arc::new(Worker::new(&enforcing));
    let held = hold(&worker, START, 3);
    assert!(worker.enter(START, Priority::Write).is_err());
    worker.follow(&Shedding { mode: ShedMode::Shadow, ..enforcing.clone() });
    assert!(worker.enter(START, Priority::Write).unwrap().is_none());
    worker.follow(&Shedding { mode: ShedMode::Off, ..enforcing.clone() });
    assert!(worker.enter(START, Priority::Write).unwrap().is_none());
    assert_eq!(counted(&worker).iter().map(|count| count.shadowed).sum::<u64>(), 1);
    // Requests that entered before count until they end, and no longer.
    worker.follow(&enforcing);
    assert_eq!(worker.status().in_flight, 3);
    drop(held);
    assert_eq!(worker.status().in_flight, 0);
    // An override cannot activate a shedder that the policy has switched off.
    let off = WorkerShedding { mode: ShedMode::Off, ..at_most(1) };
    worker.follow(&shedding(off));
    assert!(hold_none(&worker));
}

fn hold_none(worker: &Arc<Worker>) -> bool {
    (0..9).all(|_| worker.enter(START, Priority::Test).unwrap().is_none())
}

#[test]
fn a_new_policy_keeps_level_and_bound_unless_it_says_otherwise() {
    let bound = |max| {
        let [min, max] = [1, max].map(|end| NonZeroU32::new(end).unwrap());
        InFlightBound::Adaptive(AdaptiveBound { algorithm: AdaptiveAlgorithm::Gradient, min, max })
    };
    let settings =
        |max| shedding(WorkerShedding { in_flight: Some(bound(max)), ..WorkerShedding::default() });
    let worker = Arc::new(Worker::new(&settings(9)));
    let _held = hold(&worker, START, 5);
    (1..=100).for_each(|tick| worker.update(at(tick)));
    assert_eq!(worker.status().level, MAX_LEVEL);
    worker.follow(&settings(9));
    worker.follow(&settings(10));
    assert_eq!(worker.status().level, MAX_LEVEL);
    assert_eq!(worker.status().bound.map(NonZeroU32::get), Some(1));
    worker.follow(&Shedding::default());
    assert_eq!((worker.status().level, worker.status().bound), (0, None));
}
