//! A test that no subject is admitted beyond its quota, however full the store is.
//!
//! The test applies everything that a store with very little memory admits to the reference model,
//! which must admit the same operations. A fixed window that opens with the first request may be
//! the window of an overflow counter, which another subject opened. Charges in such windows are
//! checked against the windows that the subject was shown.

use std::collections::HashMap;

use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::{
    Admission, Algorithm, Charge, ChargeId, Cost, Deduplication, Limit, Millis, Operation, Reading,
    Timestamp,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate_conformance::{Model, Random};

use super::world::*;

const SUBJECTS: u64 = 24;
const CALLS: u64 = 1_500;
const SEEDS: u64 = 60;

fn calendar(quota: u64, window_ms: u64) -> Limit {
    let window = FixedWindow::new(quota, Millis::new(window_ms), Anchor::Calendar).unwrap();
    Limit::new("calendar", Algorithm::FixedWindow(window)).unwrap()
}

/// An admitted charge.
#[derive(Clone, Copy)]
struct Taken {
    limit: usize,
    who: u64,
    cost: u64,
    id: u128,
    reading: Reading,
    reserved: bool,
}

struct Run {
    store: Memory,
    bounds: Bounds,
    limits: Vec<Limit>,
    model: Model,
    /// The admitted units of each subject, by the reset in the answers.
    admitted: HashMap<(u64, Timestamp), u64>,
    taken: Vec<Taken>,
    random: Random,
    overflowed: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let max_entries = random.within(0..=29) as usize;
        let max_bytes = [4_096, 16 << 10, 64 << 10, 1 << 20][random.within(0..=3) as usize];
        let bounds = Bounds { max_entries, max_bytes };
        let limits = vec![
            fixed_window(4, 1_000),
            calendar(4, 1_000),
            sliding_window(5, 1_000, 90),
            two_bucket(6, 700),
            sliding_log(4, 900),
            token_bucket(5, 1_000, 7),
            concurrency(3, 800),
        ];
        let (model, admitted, taken) = (Model::new(), HashMap::new(), Vec::new());
        let store = Memory::new(bounds);
        Self { store, bounds, limits, model, admitted, taken, random, overflowed: 0 }
    }

    fn call(&mut self, now: Timestamp) {
        let limit = self.random.within(0..=self.limits.len() as u64 - 1) as usize;
        let who = self.random.within(0..=SUBJECTS - 1);
        let id = u128::from(self.random.bits());
        let cost = self.random.within(0..=3);
        match self.random.within(0..=9) {
            0 if !self.taken.is_empty() => self.redeem(now),
            // The release of a reservation does not show the fixed window that it belonged to.
            // Limit 0 therefore gets no reservations.
            1 if limit > 0 => {
                let until = now.after(Millis::new(self.random.within(0..=599)));
                let operation =
                    Operation::Reserve { cost: Cost::up_to(cost), id: ChargeId(id), until };
                self.take(now, (limit, who, cost, id), operation, true);
            }
            _ => {
                let operation = Operation::Charge { cost: Cost::up_to(cost), id: ChargeId(id) };
                self.take(now, (limit, who, cost, id), operation, false);
            }
        }
    }

    fn take(
        &mut self,
        now: Timestamp,
        (limit, who, cost, id): (usize, u64, u64, u128),
        operation: Operation,
        reserved: bool,
    ) {
        let subject = subject(&who.to_string());
        let charges = [Charge { limit: &self.limits[limit], subject: &subject, operation }];
        let readings = self.store.apply_now(now, &charges).unwrap();
        let reading = readings[0];
        self.overflowed = self.store.stats().overflow;
        if reading.admission != Admission::Now {
            assert!(
                reading.used + cost.max(1) > self.limits[limit].capacity() || reserved,
                "a refusal that shows room: {reading:?} of {:?}",
                self.limits[limit]
            );
            return;
        }
        if cost == 0 {
            return;
        }
        if limit == 0 {
            let used = self.admitted.entry((who, reading.full_reset_at)).or_default();
            *used += cost;
            assert!(*used <= 4, "{used} of 4 until {:?}", reading.full_reset_at);
        } else {
            let expected = self.model.apply(now, &charges)[0];
            assert_eq!(
                expected.admission,
                Admission::Now,
                "{who} was admitted {cost} of {:?} at {now:?}: {reading:?}, {expected:?}",
                self.limits[limit]
            );
        }
        self.taken.push(Taken { limit, who, cost, id, reading, reserved });
    }

    fn redeem(&mut self, now: Timestamp) {
        let index = self.random.within(0..=self.taken.len() as u64 - 1) as usize;
        let Taken { limit, who, cost, id, reading, reserved } = self.taken[index];
        let (position, id) = (reading.position, ChargeId(id));
        let less = Cost::up_to(self.random.within(0..=cost));
        let is_concurrency = limit == 6;
        let operation = match self.random.within(0..=2) {
            0 if is_concurrency => Operation::Renew { id },
            0 if reserved => Operation::Extend { id, position, until: now.after(Millis::new(500)) },
            _ if reserved => Operation::Settle { id, position, cost: less },
            _ => {
                let deduplication = if self.random.within(0..=1) == 0 {
                    Deduplication::ById
                } else {
                    Deduplication::Unneeded
                };
                Operation::Refund { cost: Cost::up_to(cost), position, id, deduplication }
            }
        };
        // Operations that must not arrive twice are not repeated.
        if !matches!(operation, Operation::Renew { .. } | Operation::Extend { .. }) {
            self.taken.swap_remove(index);
        }
        let subject = subject(&who.to_string());
        let charges = [Charge { limit: &self.limits[limit], subject: &subject, operation }];
        let answer = self.store.apply_now(now, &charges).unwrap()[0];
        assert!(answer.refunded <= cost, "{answer:?}");
        if limit == 0 {
            if let Some(used) = self.admitted.get_mut(&(who, reading.full_reset_at)) {
                *used = used.saturating_sub(answer.refunded);
            }
            return;
        }
        // The model executes only the operations that the store executed.
        let is_done = match operation {
            Operation::Refund { .. } => answer.refunded > 0,
            _ => answer.admission == Admission::Now,
        };
        if is_done {
            self.model.apply(now, &charges);
        }
    }
}

#[test]
fn nobody_is_admitted_beyond_the_quota_whatever_the_fill_level() {
    let mut overflowed = 0;
    for seed in 0..SEEDS {
        let mut run = Run::new(seed);
        let mut now = START;
        for _ in 0..CALLS {
            now = now.after(Millis::new(run.random.within(0..=39)));
            run.call(now);
            let stats = run.store.stats();
            assert!(stats.entries <= run.bounds.max_entries, "{stats:?}");
            assert!(stats.bytes <= run.bounds.max_bytes, "{stats:?} of {:?}", run.bounds);
        }
        overflowed += run.overflowed;
    }
    assert!(overflowed > SEEDS * CALLS / 20, "{overflowed}");
}
