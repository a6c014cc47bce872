//! Random traces, sequences of operations that are run on a store and on the model for comparison.

mod generate;
mod limits;
mod receipts;
mod run;

use std::fmt;

use tollgate_core::{Cost, Deduplication, Limit, Reading, StoreError, Timestamp};

pub use limits::random_limit;
pub use run::{run_trace, run_trace_by};

/// A sequence of operations on a few limits and subjects.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The seed of the trace. The same seed creates the same trace again.
    pub seed: u64,
    /// The limits that are charged.
    pub limits: Vec<Limit>,
    /// The operations.
    pub ops: Vec<Op>,
}

/// One call to a store.
#[derive(Clone, Debug)]
pub struct Op {
    /// The time of the call, by a clock that can step back.
    pub now: Timestamp,
    /// The call.
    pub call: Call,
}

/// The content of one call.
#[derive(Clone, Debug)]
pub enum Call {
    /// A charge on one or more limits, which is counted on all limits or on none.
    Charge(Vec<LimitCharge>),
    /// Peeks at the limits of a charge, independent of each other.
    Peek(Vec<LimitCharge>),
    /// A refund of an admitted charge. The number selects the charge: 0 is the last admitted
    /// charge, 1 the charge before it. The second value states whether a repetition of the refund
    /// must have no effect.
    Refund(usize, Deduplication),
    /// A renewal of the permits of an admitted charge. The number selects the charge: 0 is the last
    /// admitted charge, 1 the charge before it.
    Renew(usize),
    /// A reservation on one or more limits, which is counted on all limits or on none. The number
    /// is its duration in milliseconds.
    Reserve(Vec<LimitCharge>, u64),
    /// An extension of a reservation. The first number selects the reservation: 0 is the last
    /// reservation, 1 the reservation before it. The second number is the time in milliseconds from
    /// now until the new expiry.
    Extend(usize, u64),
    /// A settlement of a reservation. The first number selects the reservation: 0 is the last
    /// reservation, 1 the reservation before it. The second number is the actual cost as a
    /// percentage of the reserved units.
    Settle(usize, u64),
    /// A reset of a subject on a limit. The cost is ignored.
    Reset(LimitCharge),
}

/// A part of a charge: the cost on one limit for one subject.
#[derive(Clone, Copy, Debug)]
pub struct LimitCharge {
    /// The index of the limit in [`Trace::limits`].
    pub limit: usize,
    /// The number of the subject.
    pub subject: u8,
    /// The cost.
    pub cost: Cost,
}

/// The first difference between a store and the model.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed of the trace.
    pub seed: u64,
    /// The index of the operation in [`Trace::ops`].
    pub op: usize,
    /// The operation.
    pub call: Call,
    /// The time of the decision.
    pub now: Timestamp,
    /// The limit of the charge with the different answer. `None` if the store returned an error for
    /// the whole call.
    pub limit: Option<Limit>,
    /// The reading that the model returned for the charge. `None` if the store returned an error
    /// for the whole call.
    pub expected: Option<Reading>,
    /// The reading that the store returned for the charge, or `None` if the answer lacks this
    /// reading. If the call failed, the store's error.
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

/// Returns the seeds of a test: `count` seeds from `first` on, or only the seed in the environment
/// variable `TOLLGATE_SEED`.
///
/// # Panics
/// Panics if `TOLLGATE_SEED` is set and is not a number.
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
