//! The tests that every Tollgate store must pass: the reference model and the conformance suite.
//!
//! - [`Model`]: a simple, slow oracle that keeps all charges and adds them up for each request.
//! - [`suite`]: fixed cases. [`check`] runs all of them on a store.
//! - [`figure`]: measured figures of fault tests, with their bounds.
//! - [`history`]: a checker that compares the recorded answers of a store under faults with the
//!   invariants.
//! - [`schedule`]: windows of different lengths.
//! - [`trace`]: random sequences of operations that are run on a store and on the model for
//!   comparison.
//! - [`Cells`]: the simplest possible store, to test the core itself.
//! - [`vectors`]: traces with their answers as lines of JSON, for implementations in other
//!   languages.

pub mod cells;
mod dyn_store;
pub mod figure;
pub mod history;
pub mod model;
pub mod plain_hash;
pub mod random;
pub mod schedule;
pub mod suite;
pub mod trace;
pub mod vectors;

pub use cells::Cells;
pub use figure::{Bound, Figure, assert_held};
pub use model::{Ledger, Model};
pub use plain_hash::PlainHash;
pub use random::Random;
pub use suite::{check, check_charges, check_one_quota};
pub use trace::{Difference, Trace, run_trace};
