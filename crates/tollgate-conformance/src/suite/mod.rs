//! The conformance suite: fixed cases that every store must pass.

mod algorithms;
mod clocks;
mod leases;
mod many;
mod peeks;
mod plans;
mod refunds;
mod reservations;
mod resets;
mod scene;
mod transfer;

use tollgate_core::Store;

pub use transfer::check_transfer;

use crate::dyn_store::{BoxFuture, DynStore};
use crate::trace::{Trace, run_trace, seeds};

/// The number of random traces that [`check`] runs.
pub const TRACES: u64 = 200;

/// The offset that is added to the seeds of traces with reservations. With different seeds, these
/// traces have different subjects.
const RESERVING: u64 = 1_000_000;

/// The offsets that are added to the seeds of traces with plans, without and with reservations.
const PLANS: u64 = 2_000_000;
const RESERVING_PLANS: u64 = 3_000_000;

/// Runs every fixed case on `store`. After the cases, runs [`TRACES`] random traces without
/// reservations, and the same number of traces with reservations. Runs as many traces of both kinds
/// with plans, in which several quotas share the counters of a limit.
///
/// The names of the subjects start with `prefix`, which must not have been used before on this
/// store. The store needs room for some thousand subjects.
///
/// # Panics
/// Panics at the first wrong answer, with the name of the case, or with the seed of the trace.
pub async fn check<S: Store>(store: &S, prefix: &str) {
    let store = DynStore::new(store);
    charges(store, prefix).await;
    reserved(store, prefix).await;
    charged_by_plans(store, prefix).await;
    reserved_by_plans(store, prefix).await;
}

/// Runs the cases and traces of [`check`] without reservations, for a store that does not support
/// reservations.
///
/// # Panics
/// As [`check`] does.
pub async fn check_charges<S: Store>(store: &S, prefix: &str) {
    let store = DynStore::new(store);
    charges(store, prefix).await;
    charged_by_plans(store, prefix).await;
}

/// Runs the cases and traces of [`check`] without plans. A store that takes units in advance counts
/// them as used for every other quota, and a store that repeats refusals reports the used units of
/// an earlier charge with the same quota.
///
/// # Panics
/// As [`check`] does.
pub async fn check_one_quota<S: Store>(store: &S, prefix: &str) {
    let store = DynStore::new(store);
    charges(store, prefix).await;
    reserved(store, prefix).await;
}

/// Runs the cases and traces of [`check_charges`] without plans, for the same reasons as
/// [`check_one_quota`].
///
/// # Panics
/// As [`check`] does.
pub async fn check_charges_of_one_quota<S: Store>(store: &S, prefix: &str) {
    charges(DynStore::new(store), prefix).await;
}

fn charges<'f>(store: DynStore<'f>, prefix: &'f str) -> BoxFuture<'f, ()> {
    Box::pin(async move {
        many::check(&store, prefix).await;
        algorithms::check(&store, prefix).await;
        refunds::check(&store, prefix).await;
        leases::check(&store, prefix).await;
        peeks::check(&store, prefix).await;
        resets::check(&store, prefix).await;
        clocks::check(&store, prefix).await;
        for seed in seeds(0, TRACES) {
            passes(store, &Trace::random(seed), prefix).await;
        }
    })
}

fn reserved<'f>(store: DynStore<'f>, prefix: &'f str) -> BoxFuture<'f, ()> {
    Box::pin(async move {
        reservations::check(&store, prefix).await;
        for seed in seeds(RESERVING, TRACES) {
            passes(store, &Trace::reserving(seed), prefix).await;
        }
    })
}

fn charged_by_plans<'f>(store: DynStore<'f>, prefix: &'f str) -> BoxFuture<'f, ()> {
    Box::pin(async move {
        plans::check(&store, prefix).await;
        for seed in seeds(PLANS, TRACES) {
            passes(store, &Trace::random(seed).with_plans(), prefix).await;
        }
    })
}

fn reserved_by_plans<'f>(store: DynStore<'f>, prefix: &'f str) -> BoxFuture<'f, ()> {
    Box::pin(async move {
        plans::check_reservations(&store, prefix).await;
        for seed in seeds(RESERVING_PLANS, TRACES) {
            passes(store, &Trace::reserving(seed).with_plans(), prefix).await;
        }
    })
}

async fn passes(store: DynStore<'_>, trace: &Trace, prefix: &str) {
    if let Err(difference) = run_trace(&store, trace, prefix).await {
        panic!("{difference}");
    }
}
