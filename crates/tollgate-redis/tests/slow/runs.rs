//! Commands with many charges of open windows, compared with the reference model. The commands
//! contain identical charges in a row, charges of many windows at once, and other operations
//! between them.

use crate::kit::{Version, on_every_version};
use crate::shard::Way;
use tollgate_conformance::trace::{random_limit, seeds};
use tollgate_conformance::{Cells, PlainHash, Random};
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{
    Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, MAX_EXACT, Millis,
    Operation, Refusals, Store, Subject, Timestamp, Value,
};
use tollgate_redis::{Keys, Redis};

/// The number of test runs. Each run has about 200 jobs.
const SCENES: u64 = 300;
const COMMANDS: u64 = 10;

on_every_version! {
    takes_that_travel_together_give_the_models_integers
}

async fn takes_that_travel_together_give_the_models_integers(version: Version) {
    for (way, first) in Way::of(version).iter().zip([8_000_000, 9_000_000, 10_000_000, 11_000_000])
    {
        let server = way.start(version, &[]).await;
        let connection = server.connect().await;
        let store = Redis::new(connection, Keys::new(PlainHash), way.choice()).await.unwrap();
        assert_eq!(store.runtime(), way.runs());
        for seed in seeds(first, SCENES) {
            play(&store, seed).await;
        }
        server.assert_every_key_ends().await;
    }
}

/// A call in a command: its time, and its charges. A charge has the index of its limit, the index
/// of its subject, and its operation.
type Call = (Timestamp, Vec<(usize, usize, Operation)>);

/// A counted charge that can be refunded: the limit, the subject, the cost, the position and the
/// id.
type Counted = (usize, usize, Cost, ChargePosition, ChargeId);

async fn play(store: &Redis, seed: u64) {
    let mut scene = Scene::new(seed);
    let cells = Cells::default();
    for _ in 0..COMMANDS {
        let calls = scene.command();
        let charges: Vec<_> = calls.iter().map(|(_, charges)| scene.charges(charges)).collect();
        let borrowed: Vec<_> =
            calls.iter().zip(&charges).map(|((now, _), charges)| (*now, &charges[..])).collect();
        let answers = store.apply_all(&borrowed).await;
        assert_eq!(answers.len(), calls.len());
        let mut counted = Vec::new();
        for (((now, charges), answer), (_, operations)) in borrowed.iter().zip(answers).zip(&calls)
        {
            let right = cells.apply(*now, charges).await.unwrap();
            assert_eq!(&*answer.unwrap(), &*right, "TOLLGATE_SEED={seed} {now:?} {charges:?}");
            for ((limit, subject, operation), reading) in operations.iter().zip(right.iter()) {
                if let (Operation::Charge { cost, id }, true) = (*operation, right.all_admitted()) {
                    counted.push((*limit, *subject, cost, reading.position, id));
                }
            }
        }
        drop(charges);
        scene.counted = counted;
    }
}

struct Scene {
    random: Random,
    now: Timestamp,
    limits: Vec<Limit>,
    subjects: Vec<Subject>,
    counted: Vec<Counted>,
    last_id: u128,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // Three kinds of times: times of today, times at which the reset gets its thirteenth digit,
        // and times at which the reset no longer fits an integer.
        let epochs = [1_700_000_000_000, 999_999_999_990, 9_223_372_036_000];
        let now = Timestamp::from_millis(random.one_of(&epochs) + random.within(0..=900));
        let mut limits: Vec<_> =
            (0..3).map(|number| window_limit(&mut random, &format!("window{number}"))).collect();
        let other = random.within(2..=5);
        limits.push(random_limit(&mut random, other, "other"));
        let subject = |number: u64| {
            let pairs =
                [("seed", seed), ("number", number)].map(|(name, n)| (name, n.to_be_bytes()));
            let pairs = pairs.iter().map(|(name, bytes)| (*name, Value::Clear(&bytes[..])));
            Subject::new(pairs, &PlainHash)
        };
        let subjects = (0..4).map(subject).collect();
        Self { random, now, limits, subjects, counted: Vec::new(), last_id: 0 }
    }

    fn charges(&self, charges: &[(usize, usize, Operation)]) -> Vec<Charge<'_>> {
        let charge = |&(limit, subject, operation): &(usize, usize, Operation)| Charge {
            limit: &self.limits[limit],
            subject: &self.subjects[subject],
            operation,
        };
        charges.iter().map(charge).collect()
    }

    fn command(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        for _ in 0..self.random.within(1..=6) {
            let step = self.random.one_of(&[0, 0, 1, 5, 900]);
            self.now = self.now.after(Millis::new(step));
            match self.random.within(1..=10) {
                1..=6 => self.push_alike(&mut calls),
                7 | 8 => self.push_together(&mut calls),
                9 => self.push_look(&mut calls),
                _ => self.push_refund(&mut calls),
            }
        }
        calls
    }

    /// Adds similar charges: on a single key, on keys in rotation, or on random keys.
    fn push_alike(&mut self, calls: &mut Vec<Call>) {
        let (limit, cost) = (self.random.one_of(&[0, 0, 1, 1, 2, 3]), self.cost());
        let (first, pattern) = (self.random.within(0..=3), self.random.within(0..=2));
        for place in 0..self.random.within(1..=9) {
            let any = self.random.within(0..=3);
            let subject = [first, first + place, any][pattern as usize] % 4;
            let id = self.id();
            calls.push((self.now, vec![(limit, subject as usize, Operation::Charge { cost, id })]));
        }
    }

    /// Adds calls that charge many limits, sometimes the same limit twice.
    fn push_together(&mut self, calls: &mut Vec<Call>) {
        for _ in 0..self.random.within(1..=4) {
            let id = self.id();
            let takes = 2 + self.random.within(0..=2) as usize;
            let operation = |place| {
                let limit = if self.random.chance(10) { 0 } else { place % 4 };
                let subject = self.random.within(0..=1) as usize;
                (limit, subject, Operation::Charge { cost: self.cost(), id })
            };
            let charges = (0..takes).map(operation).collect();
            calls.push((self.now, charges));
        }
    }

    fn push_look(&mut self, calls: &mut Vec<Call>) {
        let (limit, subject) = (self.random.within(0..=3), self.random.within(0..=3));
        let operation = Operation::Peek { cost: self.cost() };
        calls.push((self.now, vec![(limit as usize, subject as usize, operation)]));
    }

    fn push_refund(&mut self, calls: &mut Vec<Call>) {
        if let Some((limit, subject, cost, position, id)) = self.counted.pop() {
            let deduplication = self.random.one_of(&[Deduplication::Unneeded, Deduplication::ById]);
            let operation = Operation::Refund { cost, position, id, deduplication };
            calls.push((self.now, vec![(limit, subject, operation)]));
        }
    }

    fn cost(&mut self) -> Cost {
        let cost = self.random.one_of(&[1, 1, 1, 1, 2, 7, 0, 400_000, 999_999, MAX_EXACT]);
        Cost::new(cost).unwrap()
    }

    fn id(&mut self) -> ChargeId {
        self.last_id += 1;
        ChargeId(self.last_id)
    }
}

/// Returns a fixed window with a small quota, or with a quota of about six digits.
fn window_limit(random: &mut Random, name: &str) -> Limit {
    let quotas = [1, 3, 10, 10, 60, 999_998, 999_999, 1_000_000, 1_200_000, MAX_EXACT];
    let window = Millis::new(random.one_of(&[10, 1_000, 3_600_000, 3_600_000]));
    let anchor = random.one_of(&[Anchor::FirstRequest, Anchor::Calendar]);
    let algorithm = FixedWindow::new(random.one_of(&quotas), window, anchor).unwrap();
    let limit = Limit::new(name, Algorithm::FixedWindow(algorithm)).unwrap();
    if random.chance(20) { limit.with_refusals(Refusals::Counted).unwrap() } else { limit }
}
