//! What every Tollgate store must pass: the reference model and the suite.
//!
//! - [`Model`]: an obvious, slow oracle that keeps every charge and sums them up for each question.
//! - [`suite`]: fixed cases; [`check`] runs them all on a store.
//! - [`figure`]: what a test under faults saw, beside its bound.
//! - [`history`]: what a store told under faults, held against the invariants.
//! - [`trace`]: random traces, run on a store and on the model side by side.
//! - [`Cells`]: the simplest store there can be, to prove the core itself.
//! - [`vectors`]: traces with their answers as lines of JSON, for steps in other languages.

pub mod cells;
pub mod figure;
pub mod history;
pub mod model;
pub mod plain_hash;
pub mod random;
pub mod suite;
pub mod trace;
pub mod vectors;

pub use cells::Cells;
pub use figure::{Bound, Figure, assert_held};
pub use model::{Ledger, Model};
pub use plain_hash::PlainHash;
pub use random::Random;
pub use suite::{check, check_charges};
pub use trace::{Difference, Trace, run_trace};
