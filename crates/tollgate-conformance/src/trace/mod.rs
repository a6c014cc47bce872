//! Random traces, run on a store and on the model side by side.

mod generate;
mod limits;
mod receipts;
mod run;

use std::fmt;

use tollgate_core::{Cost, Deduplication, Limit, Reading, StoreError, Timestamp};

pub use limits::random_limit;
pub use run::{run_trace, run_trace_by};

/// What happens to a few limits and subjects, in order.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The seed that it was made from, and can be made from again.
    pub seed: u64,
    /// The limits that are charged.
    pub limits: Vec<Limit>,
    /// What is asked.
    pub ops: Vec<Op>,
}

/// One call of a store.
#[derive(Clone, Debug)]
pub struct Op {
    /// When, by a clock that may step back.
    pub now: Timestamp,
    /// What.
    pub call: Call,
}

/// What is asked in one call.
#[derive(Clone, Debug)]
pub enum Call {
    /// A charge over one or more limits, all or nothing.
    Take(Vec<Take>),
    /// Looks, each for itself, at what the same charge would do.
    Look(Vec<Take>),
    /// Gives an admitted charge back: the one of this number, counted back from the last.
    Refund(usize, Deduplication),
    /// Renews the leases of an admitted charge: the one of this number, counted back from the last.
    Renew(usize),
    /// A reservation over one or more limits, all or nothing, for so many milliseconds.
    Reserve(Vec<Take>, u64),
    /// Puts the end of a reservation off to so many milliseconds from now: the one of this number,
    /// counted back from the last.
    Extend(usize, u64),
    /// Settles a reservation at so many percent of what it holds: the one of this number, counted
    /// back from the last.
    Settle(usize, u64),
    /// Forgets what a subject used in a limit, at no cost.
    Forget(Take),
}

/// A part of a charge.
#[derive(Clone, Copy, Debug)]
pub struct Take {
    /// Index into [`Trace::limits`].
    pub limit: usize,
    /// The number of a subject.
    pub subject: u8,
    /// What it costs.
    pub cost: Cost,
}

/// Where a store and the model part.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed of the trace.
    pub seed: u64,
    /// The index of the operation.
    pub op: usize,
    /// The operation.
    pub call: Call,
    /// When it was decided.
    pub now: Timestamp,
    /// The limit.
    pub limit: Option<Limit>,
    /// What the model answers.
    pub expected: Option<Reading>,
    /// What the store answered; an error, or one reading too few, if there is none.
    pub answered: Result<Option<Reading>, StoreError>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "operation {} at {}: {:?}", self.op, self.now.as_millis(), self.call)?;
        writeln!(f, "limit    {:?}", self.limit)?;
        writeln!(f, "expected {:?}", self.expected)?;
        writeln!(f, "answered {:?}", self.answered)?;
        write!(f, "replay it with TOLLGATE_SEED={} and the same `cargo test -p … NAME`", self.seed)
    }
}

impl std::error::Error for Difference {}

/// The seeds that a test runs: `count` of them from `first`, or the one in `TOLLGATE_SEED`.
///
/// # Panics
/// If `TOLLGATE_SEED` is set and is no number.
#[must_use]
pub fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    match std::env::var("TOLLGATE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("TOLLGATE_SEED is a number");
            seed..seed + 1
        }
        Err(_) => first..first + count,
    }
}
