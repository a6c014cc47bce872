//! Fixed cases that every store must pass.

mod algorithms;
mod clocks;
mod forgetting;
mod leases;
mod looks;
mod many;
mod refunds;
mod reservations;
mod scene;
mod transfer;

use tollgate_core::Store;

pub use transfer::check_transfer;

use crate::trace::{Trace, run_trace, seeds};

/// How many random traces [`check`] runs.
pub const TRACES: u64 = 200;

/// Their seeds where they reserve: other subjects.
const RESERVING: u64 = 1_000_000;

/// Runs every fixed case and [`TRACES`] random traces on `store`, and as many that reserve.
///
/// The subjects' names begin with `prefix`: one that was not used before on this store. The store
/// needs room for some thousand subjects.
///
/// # Panics
/// At the first answer that is wrong, saying which; a trace also says its seed.
pub async fn check<S: Store>(store: &S, prefix: &str) {
    check_charges(store, prefix).await;
    reservations::check(store, prefix).await;
    for seed in seeds(RESERVING, TRACES) {
        passes(store, &Trace::reserving(seed), prefix).await;
    }
}

/// As [`check`], of a store that has no place for reservations.
///
/// # Panics
/// As [`check`] does.
pub async fn check_charges<S: Store>(store: &S, prefix: &str) {
    many::check(store, prefix).await;
    algorithms::check(store, prefix).await;
    refunds::check(store, prefix).await;
    leases::check(store, prefix).await;
    looks::check(store, prefix).await;
    forgetting::check(store, prefix).await;
    clocks::check(store, prefix).await;
    for seed in seeds(0, TRACES) {
        passes(store, &Trace::random(seed), prefix).await;
    }
}

async fn passes<S: Store>(store: &S, trace: &Trace, prefix: &str) {
    if let Err(difference) = run_trace(store, trace, prefix).await {
        panic!("{difference}");
    }
}
