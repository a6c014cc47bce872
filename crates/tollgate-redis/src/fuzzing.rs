//! The entry point of the fuzz target `step_reply`. It is compiled only with `--cfg fuzzing`.

use tollgate_core::{ChargeId, Timestamp};

use crate::command::{Command, KeyCreation, Layout};
use crate::job::{Job, JobCharge, Op, Rule};
use crate::reply;

/// Decodes `data` as a reply. The first bytes of `data` choose the jobs, and the other bytes are
/// the reply to these jobs.
///
/// # Panics
/// If a job gets no answer, or more than one.
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
        0 => Op::Take { cost: 1 },
        1 => Op::Look { cost: u64::from(choice) },
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
    Job { now: Timestamp::EPOCH, tolerance: None, asks: (0..choice & 3).map(charge).collect() }
}
