//! The conformance suite, and random sequences of operations, in both layouts of the module. Every
//! number of every reading is compared with the reference model.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use tokio::task::{JoinSet, LocalSet};
use tollgate_conformance::trace::{Call, LimitCharge, seeds};
use tollgate_conformance::{Cells, PlainHash, Trace, check, run_trace};
use tollgate_core::{
    Charge, ChargeId, Deduplication, Operation, Readings, Store, Subject, Timestamp, Value,
};
use tollgate_redis::Redis;

use crate::kit::{Version, on_every_version};
use crate::loaded::{LAYOUTS, start, store};

/// The number of random traces for each kind of trace, version and layout. A trace has 48
/// operations.
const TRACES: u64 = 600;
/// The number of traces in which all calls are sent in one command.
const TOGETHER: u64 = 200;
/// The number of traces in the long test. With 48 operations each, they make a million operations
/// in the two layouts of each version.
const MANY: u64 = 10_500;
/// The number of traces that run concurrently on one connection. Their operations share commands.
const TASKS: usize = 64;

on_every_version! {
    the_suite_passes
    random_traces_give_the_models_integers
    a_million_operations_give_the_models_integers
}

async fn the_suite_passes(version: Version) {
    let server = start(version, &[]).await;
    for (choice, runs) in LAYOUTS {
        let store = store(&server, choice).await;
        assert_eq!(store.runtime(), runs);
        check(&store, &format!("{choice:?}")).await;
        assert_eq!(store.runtime(), runs);
        server.assert_every_key_ends().await;
    }
}

async fn random_traces_give_the_models_integers(version: Version) {
    let server = start(version, &[]).await;
    for ((choice, _), first) in LAYOUTS.into_iter().zip([20_000_000, 21_000_000]) {
        let store = store(&server, choice).await;
        for (part, trace) in [Trace::random, Trace::reserving, Trace::spanning].iter().enumerate() {
            for seed in seeds(first + part as u64 * TRACES, TRACES) {
                if let Err(difference) = run_trace(&store, &trace(seed), "module").await {
                    panic!("{choice:?} {difference}");
                }
            }
        }
        for seed in seeds(first + 5 * TRACES, TOGETHER) {
            run_together(&store, seed).await;
        }
    }
    server.assert_every_key_ends().await;
}

async fn a_million_operations_give_the_models_integers(version: Version) {
    let server = start(version, &[]).await;
    for ((choice, runs), first) in LAYOUTS.into_iter().zip([30_000_000, 31_000_000]) {
        let store = store(&server, choice).await;
        assert_eq!(store.runtime(), runs);
        run_concurrently(store, seeds(first, MANY)).await;
    }
    server.assert_every_key_ends().await;
}

async fn run_concurrently(store: Redis, seeds: Range<u64>) {
    let (store, seeds) = (Rc::new(store), Rc::new(RefCell::new(seeds)));
    let (local, mut tasks) = (LocalSet::new(), JoinSet::new());
    for _ in 0..TASKS {
        let (store, seeds) = (Rc::clone(&store), Rc::clone(&seeds));
        let run = async move {
            loop {
                let Some(seed) = seeds.borrow_mut().next() else { return };
                let result = run_trace(&*store, &Trace::random(seed), "many").await;
                result.unwrap_or_else(|difference| panic!("{difference}"));
            }
        };
        tasks.spawn_local_on(run, &local);
    }
    let all = async {
        while let Some(end) = tasks.join_next().await {
            end.unwrap();
        }
    };
    local.run_until(all).await;
}

/// Sends all charges and peeks of a trace in one command. Then sends the refunds of all admitted
/// charges in a second command.
pub(crate) async fn run_together(store: &Redis, seed: u64) {
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
        let charge = |part: &LimitCharge| {
            let (cost, id) = (part.cost, ChargeId(id));
            let operation = match op.call {
                Call::Peek(_) => Operation::Peek { cost },
                _ => Operation::Charge { cost, id },
            };
            let subject = &subjects[usize::from(part.subject)];
            Charge { limit: &trace.limits[part.limit], subject, operation }
        };
        calls.push((op.now, parts.iter().map(charge).collect::<Vec<_>>()));
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
    // The refunds are sorted by time, because a store may forget a refund after its window, and the
    // clocks of a trace can step back.
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
