//! A simulation in virtual time of a node in front of a service with a fixed capacity. The tests
//! check the results of each priority at three times the capacity.

use std::collections::VecDeque;
use std::sync::Arc;

use tollgate::model::policy::shedding::Shedding;
use tollgate::model::{Millis, Timestamp};
use tollgate::shed::{InFlightSlot, Priority, RECOVERY_TIME, Worker};

use crate::shed::worker::at_most;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The service runs ten requests at the same time, and each request takes 100 ms. The capacity is
/// therefore 100 requests per second.
const PLACES: usize = 10;
const SERVICE_MILLIS: u64 = 100;

/// The time after which a response is useless to the client.
const PATIENCE_MILLIS: u64 = 400;

/// The requests that arrive in each 10 ms: three, which is three times the capacity. Ten such
/// intervals contain five critical requests, five writes, ten reads and ten tests.
const BEATS: [[Priority; 3]; 2] = [
    [Priority::Critical, Priority::Read, Priority::Test],
    [Priority::Write, Priority::Read, Priority::Test],
];

/// The results of a run, by priority: requests that were sent, and requests that were answered in
/// time.
#[derive(Debug, Default)]
struct Outcome {
    requested: [u64; 4],
    in_time: [u64; 4],
    /// How often the level changed from rising to falling or back.
    turns: u64,
    most_in_flight: usize,
}

/// A service with a first-come, first-served queue.
struct Service {
    queue: VecDeque<(u64, Priority, Option<InFlightSlot>)>,
    /// The times at which each slot becomes free.
    free_at: [u64; PLACES],
}

fn run(worker: &Arc<Worker>, beats: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut service = Service { queue: VecDeque::new(), free_at: [0; PLACES] };
    let mut served: VecDeque<(u64, Option<InFlightSlot>)> = VecDeque::new();
    let (mut level, mut direction) = (0, 0);
    for beat in 0..beats {
        let now = beat * 10;
        while served.front().is_some_and(|(ends, _)| *ends <= now) {
            served.pop_front();
        }
        for priority in BEATS[(beat % 2) as usize] {
            outcome.requested[priority as usize] += 1;
            let entered = worker.enter(START.after(Millis::new(now)), priority);
            if let Ok(slot) = entered {
                service.queue.push_back((now, priority, slot));
            }
        }
        service.serve(now, &mut served, &mut outcome);
        outcome.most_in_flight = outcome.most_in_flight.max(service.queue.len() + served.len());
        let moved = (worker.status().level as i64 - level).signum();
        level = worker.status().level.into();
        if moved != 0 {
            outcome.turns += u64::from(moved != direction && direction != 0);
            direction = moved;
        }
    }
    outcome
}

impl Service {
    fn serve(
        &mut self,
        now: u64,
        served: &mut VecDeque<(u64, Option<InFlightSlot>)>,
        outcome: &mut Outcome,
    ) {
        for free_at in self.free_at.iter_mut().filter(|free_at| **free_at <= now) {
            let Some((came, priority, slot)) = self.queue.pop_front() else { return };
            let ends = now + SERVICE_MILLIS;
            *free_at = ends;
            outcome.in_time[priority as usize] += u64::from(ends - came <= PATIENCE_MILLIS);
            served.push_back((ends, slot));
        }
    }
}

fn share_in_time(outcome: &Outcome, priority: Priority) -> u64 {
    outcome.in_time[priority as usize] * 100 / outcome.requested[priority as usize]
}

#[test]
fn at_three_times_the_capacity_critical_requests_are_served_in_time_and_only_with_shedding() {
    let minute = 6_000;
    let off = run(&Arc::new(Worker::default()), minute);
    let worker = Arc::new(Worker::new(&Shedding {
        worker: Some(at_most(PLACES as u32)),
        ..Shedding::default()
    }));
    let on = run(&worker, minute);
    assert!(share_in_time(&off, Priority::Critical) <= 2, "{off:?}");
    assert!(share_in_time(&on, Priority::Critical) >= 99, "{on:?}");
    // The lower the priority, the smaller the served share.
    let shares = Priority::ALL.map(|priority| share_in_time(&on, priority));
    assert!(shares.is_sorted(), "{shares:?}");
    // The whole capacity is still used: 100 per second.
    assert!(on.in_time.iter().sum::<u64>() >= 5_000, "{on:?}");
    assert!(on.turns <= 2 * 60_000 / RECOVERY_TIME.get(), "{on:?}");
    assert!(on.most_in_flight <= 3 * PLACES, "{on:?}");
    assert!(off.most_in_flight > 1_000, "without shedding a queue grows: {off:?}");
}
