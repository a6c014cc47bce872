//! Random traces on a real server, compared with the reference model. The tests compare every
//! integer of every reading.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use crate::kit::{Server, Version, on_every_version};
use tokio::task::{JoinSet, LocalSet};
use tollgate_conformance::trace::{Call, LimitCharge, seeds};
use tollgate_conformance::{Cells, PlainHash, Trace, run_trace};
use tollgate_core::{
    Charge, ChargeId, Deduplication, Operation, Readings, Store, Subject, Timestamp, Value,
};
use tollgate_redis::{Keys, Redis, RuntimeChoice};

/// The number of traces of 48 operations each. Together, the traces have a million operations in
/// the two runtimes of the step.
const TRACES: u64 = 10_500;
/// The number of traces with reservations, in each runtime of the step.
const RESERVING: u64 = 600;
/// The number of traces with all calls sent in one batch.
const TOGETHER: u64 = 2_000;
/// The number of traces in tests that run on every version and in every runtime of the step.
const FEW: u64 = 200;
/// The number of traces that run concurrently on one connection.
const TASKS: usize = 64;

#[tokio::test]
async fn the_function_gives_the_models_integers() {
    let server = Server::start().await;
    let store = start(&server, RuntimeChoice::Best).await;
    run_traces(store, seeds(1_000_000, TRACES), Trace::random).await;
}

#[tokio::test]
async fn the_script_gives_the_models_integers() {
    let server = Server::start().await;
    let store = start(&server, RuntimeChoice::Script).await;
    run_traces(store, seeds(2_000_000, TRACES), Trace::random).await;
}

/// Run one seed with `TOLLGATE_SEED=… cargo test -p tollgate-redis --test slow
/// differential::reservations`.
#[tokio::test]
async fn reservations_have_the_models_integers() {
    let server = Server::start().await;
    for (choice, first) in [(RuntimeChoice::Best, 8_000_000), (RuntimeChoice::Script, 9_000_000)] {
        let store = start(&server, choice).await;
        run_traces(store, seeds(first, RESERVING), Trace::reserving).await;
    }
    server.assert_every_key_ends().await;
}

/// Sends many calls on the same keys in one command. Each call sees the results of the earlier
/// calls.
#[tokio::test]
async fn calls_that_travel_together_are_decided_one_after_the_other() {
    let server = Server::start().await;
    for (choice, first) in [(RuntimeChoice::Best, 4_000_000), (RuntimeChoice::Script, 5_000_000)] {
        let store = start(&server, choice).await;
        for seed in seeds(first, TOGETHER) {
            run_together(&store, seed).await;
        }
    }
}

on_every_version! {
    few_traces_give_the_models_integers
}

async fn few_traces_give_the_models_integers(version: Version) {
    let server = Server::start_version(version, &[]).await;
    for (choice, first) in [(RuntimeChoice::Best, 6_000_000), (RuntimeChoice::Script, 7_000_000)] {
        run_traces(start(&server, choice).await, seeds(first, FEW), Trace::random).await;
        let reserving = seeds(first + 3 * FEW, FEW);
        run_traces(start(&server, choice).await, reserving, Trace::reserving).await;
        let store = start(&server, choice).await;
        for seed in seeds(first + FEW, FEW) {
            run_together(&store, seed).await;
        }
        for seed in seeds(first + 2 * FEW, FEW) {
            let trace = Trace::spanning(seed);
            if let Err(difference) = run_trace(&store, &trace, "spanning").await {
                panic!("{difference}");
            }
        }
    }
    server.assert_every_key_ends().await;
}

/// Sends the charges and peeks of a trace in one command. Sends the refunds of all admitted charges
/// in a second command.
async fn run_together(store: &Redis, seed: u64) {
    let trace = Trace::random(seed);
    let cells = Cells::default();
    let subjects = [0, 1].map(|number: u64| {
        let pairs = [("seed", seed), ("number", number)].map(|(name, n)| (name, n.to_be_bytes()));
        let pairs = pairs.iter().map(|(name, bytes)| (*name, Value::Clear(&bytes[..])));
        Subject::new(pairs, &PlainHash)
    });
    let mut calls = Vec::new();
    for (id, op) in (1..).zip(&trace.ops) {
        let (Call::Charge(parts) | Call::Peek(parts)) = &op.call else { continue };
        let charge = |(place, part): (usize, &LimitCharge)| {
            let (cost, id) = (part.cost, ChargeId(id));
            // Some calls read one of their limits and charge their other limits.
            let looks = matches!(op.call, Call::Peek(_)) || place == 2;
            let operation =
                if looks { Operation::Peek { cost } } else { Operation::Charge { cost, id } };
            let subject = &subjects[usize::from(part.subject)];
            Charge { limit: &trace.limits[part.limit], subject, operation }
        };
        calls.push((op.now, parts.iter().enumerate().map(charge).collect::<Vec<_>>()));
    }
    let taken = compare(store, &cells, &calls, seed).await;
    let mut refunds = Vec::new();
    for ((now, charges), readings) in calls.iter().zip(&taken) {
        if !readings.all_admitted() {
            continue;
        }
        let mut charges = charges.clone();
        for (charge, reading) in charges.iter_mut().zip(readings.iter()) {
            if let Operation::Charge { cost, id } = charge.operation {
                let (position, deduplication) = (reading.position, Deduplication::ById);
                charge.operation = Operation::Refund { cost, position, id, deduplication };
            }
        }
        refunds.push((*now, charges));
    }
    // The refunds are sorted by time, because the clocks of a trace step back, and a store may
    // forget a refund once the refund's window is over.
    refunds.sort_by_key(|(now, _)| *now);
    compare(store, &cells, &refunds, seed).await;
}

async fn compare(
    store: &Redis,
    cells: &Cells,
    calls: &[(Timestamp, Vec<Charge<'_>>)],
    seed: u64,
) -> Vec<Readings> {
    let borrowed: Vec<_> = calls.iter().map(|(now, charges)| (*now, &charges[..])).collect();
    let answers = store.apply_all(&borrowed).await;
    assert_eq!(answers.len(), calls.len());
    let mut expected = Vec::new();
    for ((now, charges), answer) in calls.iter().zip(answers) {
        let right = cells.apply(*now, charges).await.unwrap();
        assert_eq!(&*answer.unwrap(), &*right, "TOLLGATE_SEED={seed} {now:?} {charges:?}");
        expected.push(right);
    }
    expected
}

async fn start(server: &Server, choice: RuntimeChoice) -> Redis {
    Redis::new(server.connect().await, Keys::new(PlainHash), choice).await.unwrap()
}

async fn run_traces(store: Redis, seeds: Range<u64>, trace: fn(u64) -> Trace) {
    let (store, seeds) = (Rc::new(store), Rc::new(RefCell::new(seeds)));
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (store, seeds) = (Rc::clone(&store), Rc::clone(&seeds));
        let run = async move {
            loop {
                let Some(seed) = seeds.borrow_mut().next() else { return };
                if let Err(difference) = run_trace(&*store, &trace(seed), "random").await {
                    panic!("{difference}");
                }
            }
        };
        tasks.spawn_local_on(run, &local);
    }
    local
        .run_until(async {
            while let Some(end) = tasks.join_next().await {
                end.unwrap();
            }
        })
        .await;
}
