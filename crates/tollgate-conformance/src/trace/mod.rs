//! Random traces, run on a store and on the model for comparison.

mod generate;
mod limits;
mod receipts;
mod run;

use std::fmt;

use tollgate_core::{Cost, Deduplication, Limit, Reading, StoreError, Timestamp};

pub use limits::random_limit;
pub use run::{run_trace, run_trace_by};

/// The operations on a few limits and subjects, in order.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The seed of the trace, from which it can be created again.
    pub seed: u64,
    /// The limits that are charged.
    pub limits: Vec<Limit>,
    /// The operations.
    pub ops: Vec<Op>,
}

/// One call to a store.
#[derive(Clone, Debug)]
pub struct Op {
    /// The time, by a clock that may step back.
    pub now: Timestamp,
    /// The call.
    pub call: Call,
}

/// The content of one call.
#[derive(Clone, Debug)]
pub enum Call {
    /// A charge on one or more limits, all or none.
    Take(Vec<Take>),
    /// Independent peeks at the result of the same charge.
    Look(Vec<Take>),
    /// A refund of an admitted charge: the one with this number, counted back from the last.
    Refund(usize, Deduplication),
    /// A renewal of the permits of an admitted charge: the one with this number, counted back from
    /// the last.
    Renew(usize),
    /// A reservation on one or more limits, all or none, for this many milliseconds.
    Reserve(Vec<Take>, u64),
    /// An extension of a reservation to this many milliseconds from now: the one with this number,
    /// counted back from the last.
    Extend(usize, u64),
    /// A settlement of a reservation with this percentage of its units. The first number selects
    /// the reservation, counted back from the last one.
    Settle(usize, u64),
    /// A reset of a subject on a limit. The cost is ignored.
    Forget(Take),
}

/// A part of a charge.
#[derive(Clone, Copy, Debug)]
pub struct Take {
    /// The index in [`Trace::limits`].
    pub limit: usize,
    /// The number of a subject.
    pub subject: u8,
    /// The cost.
    pub cost: Cost,
}

/// The first difference between a store and the model.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed of the trace.
    pub seed: u64,
    /// The index of the operation.
    pub op: usize,
    /// The operation.
    pub call: Call,
    /// The time of the decision.
    pub now: Timestamp,
    /// The limit.
    pub limit: Option<Limit>,
    /// The answer of the model.
    pub expected: Option<Reading>,
    /// The answer of the store: a reading, an error, or `None` if a reading is missing.
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

/// Returns the seeds of a test: `count` from `first`, or the one in `TOLLGATE_SEED`.
///
/// # Panics
/// If `TOLLGATE_SEED` is set and is not a number.
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
