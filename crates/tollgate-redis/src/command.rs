//! Encodes many jobs into one command, in the format that the step reads. The command contains each
//! key and each limit once.

mod locations;
mod run;

use std::collections::HashMap;

use tollgate_core::{OnExpiry, Timestamp};

use self::locations::{NamedLocation, location_keys};
use self::run::{Keys, Run};
use crate::job::{Job, JobCharge, Op, Rule};

/// Whether a command may create keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyCreation {
    /// The step may create keys.
    Allowed,
    /// The step must not create keys, because the server is out of memory.
    Denied,
}

/// Where the step stores state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each limit and subject has a key of its own.
    Keys,
    /// The state is stored in tables that many subjects share, if possible.
    Tables,
}

/// A command for the step: its keys and its argument.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    /// Every key of the jobs. Each key occurs once.
    pub(crate) keys: Vec<&'a [u8]>,
    /// The encoded jobs, which are the argument of the step.
    pub(crate) argument: Vec<u8>,
}

/// The encoded size of a job in bytes, without its keys and charges. `CHARGE_BYTES` is the size of
/// a charge without its key.
pub(crate) const JOB_BYTES: usize = 11;
pub(crate) const CHARGE_BYTES: usize = 40;

impl<'a> Command<'a> {
    /// Encodes a command that executes `jobs` in the given order. Jobs without charges are left
    /// out.
    pub(crate) fn new(
        jobs: &'a [Job],
        room: KeyCreation,
        deadline: Option<Timestamp>,
        layout: Layout,
    ) -> Self {
        let mut indexes = Indexes::default();
        let mut body = Vec::with_capacity(jobs.len() * (JOB_BYTES + CHARGE_BYTES));
        let mut run: Option<Run> = None;
        for job in jobs.iter().filter(|job| !job.charges.is_empty()) {
            let next = indexes.run(job);
            if let (Some(run), Some(next)) = (&mut run, &next)
                && run.join(next)
            {
                continue;
            }
            if let Some(run) = run.take() {
                run.push(&mut body);
            }
            run = next;
            if run.is_none() {
                push_job(&mut body, &mut indexes, job);
            }
        }
        if let Some(run) = run {
            run.push(&mut body);
        }
        let mut argument = Vec::with_capacity(12 + indexes.rules.len() * 30 + body.len());
        let has_places = layout == Layout::Tables;
        argument.push(u8::from(room == KeyCreation::Denied) + 2 * u8::from(has_places));
        // A deadline of zero means that the command has no deadline.
        push_number(&mut argument, deadline.map_or(0, |deadline| deadline.as_millis().max(1)));
        push_index(&mut argument, indexes.rules.len());
        for rule in &indexes.rules {
            push_rule(&mut argument, rule);
        }
        let keys = if has_places {
            location_keys(&indexes.locations, &mut argument)
        } else {
            indexes.locations.iter().map(|location| location.name).collect()
        };
        argument.extend_from_slice(&body);
        Self { keys, argument }
    }
}

/// The indexes of keys and limits in a command. The first index is 1, as in Lua.
#[derive(Default)]
struct Indexes<'a> {
    locations: Vec<NamedLocation<'a>>,
    key_indexes: HashMap<&'a [u8], usize>,
    rules: Vec<Rule>,
    rule_indexes: HashMap<Rule, usize>,
}

impl<'a> Indexes<'a> {
    /// Returns the index of the key called `name`. `kind` is the code of the limit's algorithm.
    fn key(&mut self, name: &'a [u8], kind: u8) -> usize {
        *self.key_indexes.entry(name).or_insert_with(|| {
            self.locations.push(NamedLocation { name, kind });
            self.locations.len()
        })
    }

    /// Returns a run (jobs that share one header) that consists of `job`. Returns `None` if `job`
    /// does not have exactly one charge.
    fn run(&mut self, job: &'a Job) -> Option<Run> {
        let [operation @ JobCharge { op: Op::Charge { cost }, .. }] = &*job.charges else {
            return None;
        };
        let rule = self.rule(operation.rule_at(job.now));
        let key = self.key(&operation.key, operation.rule.kind);
        Some(Run { now: job.now, rule, cost: *cost, key, jobs: 1, keys: Keys::Consecutive })
    }

    fn rule(&mut self, rule: Rule) -> usize {
        *self.rule_indexes.entry(rule).or_insert_with(|| {
            self.rules.push(rule);
            self.rules.len()
        })
    }
}

/// The most charges of a job with a single code for the operations of all charges. A job with more
/// charges has a code for each charge.
const MAX_CHARGES: usize = 16;
const TAKE_ALL: u8 = 8;

fn push_job<'a>(out: &mut Vec<u8>, indexes: &mut Indexes<'a>, job: &'a Job) {
    push_number(out, job.now.as_millis());
    push_index(out, job.charges.len());
    let takes_from_windows = takes_from_windows(job);
    if takes_from_windows {
        out.push(TAKE_ALL);
    }
    for operation in &job.charges {
        match operation.op {
            Op::Charge { cost } if takes_from_windows => {
                push_target(out, indexes, operation, (job.now, cost));
            }
            _ => push_charge(out, indexes, operation, job.now),
        }
    }
}

/// Returns whether each charge of a job has a key of its own, and all limits of the job are fixed
/// windows that do not count refused requests.
fn takes_from_windows(job: &Job) -> bool {
    job.charges.len() <= MAX_CHARGES
        && job.charges.iter().enumerate().all(|(index, operation)| {
            matches!(operation.op, Op::Charge { cost } if cost > 0)
                && operation.rule.kind == Rule::FIXED_WINDOW
                && operation.rule.counts_refused == 0
                && job.charges[..index].iter().all(|before| before.key != operation.key)
        })
}

fn push_rule(out: &mut Vec<u8>, rule: &Rule) {
    out.extend_from_slice(&[rule.kind, rule.counts_refused]);
    for number in [rule.quota, rule.window, rule.extra, rule.skew_max] {
        push_number(out, number);
    }
}

fn push_charge<'a>(
    out: &mut Vec<u8>,
    indexes: &mut Indexes<'a>,
    operation: &'a JobCharge,
    now: Timestamp,
) {
    let (code, cost) = match operation.op {
        Op::Charge { cost } => (1, cost),
        Op::TakeLease { cost, .. } => (2, cost),
        Op::Refund { cost, .. } => (3, cost),
        Op::RefundGuarded { cost, .. } => (4, cost),
        Op::RefundLease { .. } => (5, 0),
        Op::Renew { .. } => (6, 0),
        Op::Peek { cost } => (7, cost),
        Op::Reset => (11, 0),
        Op::Cell => (12, 0),
        Op::Join { .. } => (13, 0),
        Op::Reserve { cost, .. } => (14, cost),
        Op::Extend { .. } => (15, 0),
        Op::Settle { cost, .. } => (16, cost),
    };
    out.push(code);
    push_target(out, indexes, operation, (now, cost));
    match &operation.op {
        Op::Charge { .. } | Op::Peek { .. } | Op::Reset | Op::Cell => {}
        Op::TakeLease { id, .. } | Op::RefundLease { id } | Op::Renew { id } => {
            out.extend_from_slice(&id.0.to_be_bytes());
        }
        Op::Refund { position, .. } => push_number(out, *position),
        Op::RefundGuarded { position, guard, until, .. } => {
            push_number(out, *position);
            push_index(out, indexes.key(guard, Rule::FIXED_WINDOW));
            push_number(out, until.as_millis());
        }
        Op::Reserve { id, until, at_most, on_expiry, .. } => {
            out.extend_from_slice(&id.0.to_be_bytes());
            push_number(out, until.as_millis());
            push_number(out, *at_most);
            out.push(u8::from(*on_expiry == OnExpiry::Charge));
        }
        Op::Extend { id, until } => {
            out.extend_from_slice(&id.0.to_be_bytes());
            push_number(out, until.as_millis());
        }
        Op::Settle { id, most, .. } => {
            out.extend_from_slice(&id.0.to_be_bytes());
            push_number(out, *most);
        }
        Op::Join { cell } => {
            push_index(out, cell.len());
            out.extend_from_slice(cell);
        }
    }
}

fn push_target<'a>(
    out: &mut Vec<u8>,
    indexes: &mut Indexes<'a>,
    operation: &'a JobCharge,
    (now, cost): (Timestamp, u64),
) {
    push_index(out, indexes.rule(operation.rule_at(now)));
    push_index(out, indexes.key(&operation.key, operation.rule.kind));
    push_number(out, cost);
}

/// Appends the seven lowest bytes of `number`, the lowest byte first. These 56 bits are enough for
/// every integer that a double represents exactly.
fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes()[..7]);
}

/// Appends `index` as four bytes. Four bytes are enough, because a command with more than 2^32 keys
/// would not fit into the server's memory.
fn push_index(out: &mut Vec<u8>, index: usize) {
    out.extend_from_slice(&(index as u32).to_le_bytes());
}
