//! The entry points of the fuzz targets `step_reply` and `step_command`. This module is compiled
//! only with `--cfg fuzzing`.

use std::sync::LazyLock;

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::key::Value;
use tollgate_core::{
    Algorithm, CellKey, Charge, ChargeId, ChargePosition, Cost, Deduplication, KeyedHash, Limit,
    Millis, Operation, Subject, Timestamp,
};

use crate::answer::Answer;
use crate::command::{Command, KeyCreation, Layout};
use crate::job::{Job, JobCharge, Op, Rule};
use crate::key::Keys;
use crate::reply;

/// Decodes `data` as a reply. The first four bytes of `data` choose the jobs, and the other bytes
/// are the reply to these jobs.
///
/// # Panics
/// If a job gets no answer, or more than one answer.
pub fn reply(data: &[u8]) {
    let Some((choice, reply)) = data.split_first_chunk::<4>() else { return };
    let jobs: Vec<Job> = choice.iter().map(|choice| job(*choice)).collect();
    assert_eq!(reply::decode(&jobs, reply).len(), jobs.len());
    let _ = reply::clock(reply);
    for layout in [Layout::Keys, Layout::Tables] {
        let command = Command::new(&jobs, KeyCreation::Allowed, None, layout);
        assert!(command.keys.len() <= 16);
    }
}

fn job(choice: u8) -> Job {
    let op = match choice >> 4 & 3 {
        0 => Op::Charge { cost: 1 },
        1 => Op::Peek { cost: u64::from(choice) },
        2 => Op::Cell,
        _ => Op::Renew { id: ChargeId(u128::from(choice)) },
    };
    let kind = 1 + (choice >> 2 & 3);
    let rule = Rule { kind, counts_refused: 0, quota: 9, window: 1000, extra: 0, skew_max: 50 };
    let charge = |index: u8| JobCharge {
        rule,
        key: Box::new([choice, index]),
        op: op.clone(),
        schedule: None,
    };
    Job { now: Timestamp::EPOCH, tolerance: None, charges: (0..choice & 3).map(charge).collect() }
}

/// A keyed hash that returns the first 16 bytes of its input.
struct Plain;

impl KeyedHash for Plain {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        let mut hash = [0; 16];
        hash.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        hash
    }
}

/// Carries out a command with the keys and the argument. The first parameter is true if the step
/// stores state in tables that many subjects share, and false if each limit and subject has a key.
/// Returns the reply.
pub type Step<'s> = dyn FnMut(bool, &[&[u8]], &[u8]) -> Option<Vec<u8>> + 's;

/// Encodes the jobs that `data` chooses as commands, once for state in keys and once for state in
/// tables. Passes each command to `step`, and decodes the replies.
///
/// # Panics
/// If `step` returns no reply, if a reply does not decode as an answer to every job, or if the
/// answers for keys and for tables differ.
pub fn command(data: &[u8], step: &mut Step<'_>) {
    for jobs in jobs(data).chunks(JOBS) {
        let [with_keys, with_tables] = [Layout::Keys, Layout::Tables].map(|layout| {
            let command = Command::new(jobs, KeyCreation::Allowed, None, layout);
            let reply = step(layout == Layout::Tables, &command.keys, &command.argument);
            let answers = reply::decode(jobs, &reply.expect("the step reads every command"));
            assert_eq!(answers.len(), jobs.len());
            answers
        });
        for (job, answers) in jobs.iter().zip(with_keys.into_iter().zip(with_tables)) {
            let (Ok(with_key), Ok(with_table)) = &answers else {
                panic!("{answers:?} for {job:?}")
            };
            assert!(is_same(with_key, with_table), "{answers:?} for {job:?}");
        }
    }
}

fn is_same(one: &Answer, other: &Answer) -> bool {
    match (one, other) {
        (Answer::Readings(one), Answer::Readings(other)) => {
            one.source() == other.source() && one[..] == other[..]
        }
        (Answer::CellTransfer(one), Answer::CellTransfer(other)) => one == other,
        (Answer::Joined, Answer::Joined) => true,
        _ => false,
    }
}

/// The most jobs of one command.
const JOBS: usize = 8;

/// Returns the jobs of all commands. Nine bytes of `data` make a job, three bytes a charge. The
/// bytes of a charge choose its limit, its operation, and its subject and amount. The first byte of
/// a job also advances the time, and a second byte of 255 makes a job that reads cells.
fn jobs(data: &[u8]) -> Vec<Job> {
    let (mut now, mut jobs) = (Timestamp::from_millis(1_700_000_000_000), Vec::new());
    for job in data.chunks(9) {
        now = now.after(Millis::new(u64::from(job[0] >> 5) * 400));
        let charges = job.chunks_exact(3);
        let subject = |charge: &[u8]| &SUBJECTS[usize::from(charge[2] & 3)];
        let limit = |charge: &[u8]| &LIMITS[usize::from(charge[0] & 15) % LIMITS.len()];
        if job.len() >= 3 && job[1] == 255 {
            let cell_key = |charge| CellKey { limit: limit(charge), subject: subject(charge) };
            let cell_keys: Vec<_> = charges.map(cell_key).collect();
            jobs.extend(Job::of_cell_keys(&KEYS, now, &cell_keys));
            continue;
        }
        let charge = |charge| Charge {
            limit: limit(charge),
            subject: subject(charge),
            operation: operation(now, charge),
        };
        let charges: Vec<_> = charges.map(charge).collect();
        jobs.push(Job::new(&KEYS, now, &charges));
    }
    jobs
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys::new(Plain));

/// The subjects of all charges.
static SUBJECTS: LazyLock<[Subject; 4]> = LazyLock::new(|| {
    [0, 1, 2, 3].map(|user| Subject::new([("user", Value::Hashed([user; 16]))], &Plain))
});

static LIMITS: LazyLock<Vec<Limit>> = LazyLock::new(limits);

fn limits() -> Vec<Limit> {
    let (window, step) = (Millis::from_secs(10), Millis::from_secs(1));
    let algorithms = [
        FixedWindow::new(5, window, Anchor::FirstRequest).map(Algorithm::FixedWindow),
        FixedWindow::new(900, window, Anchor::Calendar).map(Algorithm::FixedWindow),
        SlidingWindow::new(9, window, step).map(Algorithm::SlidingWindow),
        TwoBucket::new(9, window).map(Algorithm::TwoBucket),
        SlidingLog::new(9, window).map(Algorithm::SlidingLog),
        TokenBucket::new(9, window, 4).map(Algorithm::TokenBucket),
        Concurrency::new(3, window).map(Algorithm::Concurrency),
    ];
    let limit = |(index, algorithm): (usize, Result<Algorithm, _>)| {
        Limit::new(&format!("limit-{index}"), algorithm.expect("a valid algorithm"))
    };
    let limits = algorithms.into_iter().enumerate().map(limit);
    limits.map(|limit| limit.expect("a valid limit")).collect()
}

fn operation(now: Timestamp, charge: &[u8]) -> Operation {
    let (choice, amount) = (charge[1], u64::from(charge[2] >> 2));
    let cost = Cost::new(amount % 12).unwrap_or_default();
    let id = ChargeId(u128::from(amount % 4));
    let position = ChargePosition(now.as_millis() / 1_000 * 1_000 + amount * 250);
    let until = now.after(Millis::new(amount * 100));
    match choice % 12 {
        0..=4 => Operation::Charge { cost, id },
        5 => Operation::Peek { cost },
        6 => Operation::Refund { cost, position, id, deduplication: Deduplication::ById },
        7 => Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded },
        8 => Operation::Reserve { cost, id, until },
        9 => Operation::Extend { id, position, until },
        10 => Operation::Settle { id, position, cost },
        _ => Operation::Reset,
    }
}
