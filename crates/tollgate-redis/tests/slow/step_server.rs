//! Server events that affect the step: the server is flushed, or runs out of memory.

use crate::kit::Server;
use redis::aio::MultiplexedConnection;
use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, Cost, Deduplication, Limit, Millis, Operation, Reading,
    Store, StoreError, Subject, Timestamp, Value,
};
use tollgate_redis::{Keys, Redis, RuntimeChoice, StepRuntime};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

async fn store(connection: MultiplexedConnection, choice: RuntimeChoice) -> Redis {
    Redis::new(connection, Keys::new(PlainHash), choice).await.unwrap()
}

fn subject(number: u64) -> Subject {
    Subject::new([("number", Value::Clear(&number.to_be_bytes()))], &PlainHash)
}

fn limit() -> Limit {
    let window = FixedWindow::new(1_000, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    Limit::new("core", Algorithm::FixedWindow(window)).unwrap()
}

async fn apply_one(
    store: &Redis,
    subject: &Subject,
    operation: Operation,
) -> Result<Reading, StoreError> {
    let limit = limit();
    let readings = store.apply(NOW, &[Charge { limit: &limit, subject, operation }]).await?;
    Ok(readings[0])
}

const fn take() -> Operation {
    Operation::Charge { cost: Cost::ONE, id: ChargeId(1) }
}

async fn run(connection: &mut MultiplexedConnection, words: &[&str]) {
    redis::cmd(words[0]).arg(&words[1..]).exec_async(connection).await.unwrap();
}

#[tokio::test]
async fn a_server_that_forgets_the_step_loses_no_charge() {
    let server = Server::start().await;
    let mut admin = server.connect().await;
    for (choice, number) in [(RuntimeChoice::Best, 0), (RuntimeChoice::Script, 1)] {
        let (store, subject) = (store(server.connect().await, choice).await, subject(number));
        for used in 1..=100 {
            run(&mut admin, &["SCRIPT", "FLUSH", "SYNC"]).await;
            run(&mut admin, &["FUNCTION", "FLUSH", "SYNC"]).await;
            let reading = apply_one(&store, &subject, take()).await.unwrap();
            assert_eq!((reading.admission, reading.used), (Admission::Now, used), "{choice:?}");
        }
    }
}

#[tokio::test]
async fn two_nodes_load_the_step_once() {
    let server = Server::start().await;
    let one = store(server.connect().await, RuntimeChoice::Best).await;
    let other = store(server.connect().await, RuntimeChoice::Best).await;
    assert_eq!((one.runtime(), other.runtime()), (StepRuntime::Function, StepRuntime::Function));
    assert_eq!(apply_one(&one, &subject(0), take()).await.unwrap().used, 1);
    assert_eq!(apply_one(&other, &subject(0), take()).await.unwrap().used, 2);
}

#[tokio::test]
async fn without_memory_windows_go_on_and_new_keys_are_reported() {
    for choice in [RuntimeChoice::Best, RuntimeChoice::Script] {
        let server = Server::start_with(&["--maxmemory-policy", "noeviction"]).await;
        let (store, mut admin) =
            (store(server.connect().await, choice).await, server.connect().await);
        let taken = apply_one(&store, &subject(0), take()).await.unwrap();
        run(&mut admin, &["CONFIG", "SET", "maxmemory", "1"]).await;
        for used in 2..=200 {
            let reading = apply_one(&store, &subject(0), take()).await.unwrap();
            assert_eq!((reading.admission, reading.used), (Admission::Now, used), "{choice:?}");
            let refused = apply_one(&store, &subject(used), take()).await;
            assert_eq!(refused, Err(StoreError::Full), "{choice:?}");
        }
        for (deduplication, left) in [(Deduplication::Unneeded, 199), (Deduplication::ById, 198)] {
            let (cost, position, id) = (Cost::ONE, taken.position, ChargeId(1));
            let back = apply_one(
                &store,
                &subject(0),
                Operation::Refund { cost, position, id, deduplication },
            )
            .await;
            let back = back.unwrap();
            assert_eq!((back.refunded, back.used), (1, left), "{choice:?}");
        }
        let peek = Operation::Charge { cost: Cost::PEEK, id: ChargeId(1) };
        assert_eq!(apply_one(&store, &subject(9_999), peek).await.unwrap().used, 0, "{choice:?}");
        run(&mut admin, &["CONFIG", "SET", "maxmemory", "0"]).await;
        let mut sendings = 0;
        while apply_one(&store, &subject(10_000), take()).await == Err(StoreError::Full) {
            sendings += 1;
            assert!(sendings < 1_000, "{choice:?}: still full");
        }
    }
}

#[tokio::test]
async fn one_call_carries_many_jobs_in_their_order() {
    let server = Server::start().await;
    let store = store(server.connect().await, RuntimeChoice::Best).await;
    let (limit, subject) = (limit(), subject(0));
    let charges = [Charge { limit: &limit, subject: &subject, operation: take() }];
    let calls: Vec<_> = (0..3_000).map(|_| (NOW, &charges[..])).collect();
    let answers = store.apply_all(&calls).await;
    for (used, answer) in (1_u64..).zip(&answers) {
        let reading = answer.as_ref().unwrap()[0];
        let admission =
            if used <= 1_000 { Admission::Now } else { Admission::At(reading.full_reset_at) };
        assert_eq!((reading.admission, reading.used), (admission, used.min(1_000)));
    }
    let (one, other) = (calls.len(), answers.len());
    assert_eq!(one, other);
}
