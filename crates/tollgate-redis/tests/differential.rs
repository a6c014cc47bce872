//! Random traces on a real server beside the reference model: every integer of every answer.

mod kit;

use std::cell::RefCell;
use std::rc::Rc;

use kit::Server;
use tokio::task::{JoinSet, LocalSet};
use tollgate_conformance::trace::seeds;
use tollgate_conformance::{PlainHash, Trace, run_trace};
use tollgate_redis::{Choice, Keys, Redis};

/// Traces of 48 operations each: a million operations over both ways of running the step.
const TRACES: u64 = 10_500;
/// Traces that run at the same time over one connection.
const TASKS: usize = 64;

#[tokio::test]
async fn the_function_gives_the_models_integers() {
    let server = Server::start().await;
    let store = start(&server, Choice::Best).await;
    run_traces(store, 3_000_000).await;
}

#[tokio::test]
async fn the_script_gives_the_models_integers() {
    let server = Server::start().await;
    let store = start(&server, Choice::Script).await;
    run_traces(store, 2_000_000).await;
}

async fn start(server: &Server, choice: Choice) -> Redis {
    Redis::new(server.connect().await, Keys::new(PlainHash), choice).await.unwrap()
}

async fn run_traces(store: Redis, first: u64) {
    let store = Rc::new(store);
    let seeds = Rc::new(RefCell::new(seeds(first, TRACES)));
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (store, seeds) = (Rc::clone(&store), Rc::clone(&seeds));
        let run = async move {
            loop {
                let Some(seed) = seeds.borrow_mut().next() else { return };
                if let Err(difference) = run_trace(&*store, &Trace::random(seed), "random").await {
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
