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

/// Encodes the jobs that `data` chooses as commands, passes the keys and the argument of each
/// command to `step`, and decodes the replies. Returns the answers as text. `has_tables` is true if
/// the step stores state in tables that many subjects share, and false if each limit and subject
/// has a key.
///
/// # Panics
/// If `step` returns no reply, or a reply that does not decode as an answer to every job.
pub fn command(
    data: &[u8],
    has_tables: bool,
    step: &mut dyn FnMut(&[&[u8]], &[u8]) -> Option<Vec<u8>>,
) -> Vec<String> {
    let layout = if has_tables { Layout::Tables } else { Layout::Keys };
    let keys = Keys::new(Plain);
    let mut answers = Vec::new();
    for jobs in jobs(data, &keys) {
        let command = Command::new(&jobs, KeyCreation::Allowed, None, layout);
        let reply = step(&command.keys, &command.argument);
        let reply = reply.expect("the step reads every command");
        let decoded = reply::decode(&jobs, &reply);
        assert_eq!(decoded.len(), jobs.len());
        for (job, answer) in jobs.iter().zip(decoded) {
            let answer = answer.unwrap_or_else(|error| panic!("{error:?} for {job:?}"));
            answers.push(format!("{answer:?}"));
        }
    }
    answers
}

/// The most jobs of one command.
const JOBS: usize = 8;

/// Returns the jobs of several commands. Nine bytes of `data` make a job, three bytes a charge. The
/// bytes of a charge choose its limit, its operation, and its subject and amount. The first byte of
/// a job also advances the time, and a second byte of 255 makes a job that reads cells.
fn jobs(data: &[u8], keys: &Keys) -> Vec<Vec<Job>> {
    let (mut now, mut jobs) = (Timestamp::from_millis(1_700_000_000_000), Vec::new());
    for job in data.chunks(9) {
        now = now.after(Millis::new(u64::from(job[0] >> 5) * 400));
        let subject =
            |choice: u8| Subject::new([("user", Value::Hashed([choice & 3; 16]))], &Plain);
        let charges: Vec<_> = job.chunks_exact(3).collect();
        let subjects: Vec<_> = charges.iter().map(|charge| subject(charge[2])).collect();
        let limit = |charge: &[u8]| &LIMITS[usize::from(charge[0] & 15) % LIMITS.len()];
        if charges.first().is_some_and(|charge| charge[1] == 255) {
            let cell_key = |(charge, subject)| CellKey { limit: limit(charge), subject };
            let cell_keys: Vec<_> = charges.iter().copied().zip(&subjects).map(cell_key).collect();
            jobs.extend(Job::of_cell_keys(keys, now, &cell_keys));
            continue;
        }
        let charge = |(charge, subject): (&&[u8], _)| Charge {
            limit: limit(charge),
            subject,
            operation: operation(now, charge),
        };
        let charges: Vec<_> = charges.iter().zip(&subjects).map(charge).collect();
        jobs.push(Job::new(keys, now, &charges));
    }
    jobs.chunks(JOBS).map(<[Job]>::to_vec).collect()
}

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
