//! What servers do to the step: forget it, and run out of memory.

mod kit;

use kit::Server;
use redis::aio::MultiplexedConnection;
use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{
    Algorithm, Ask, Charge, ChargeId, Cost, Fit, Limit, Millis, Reading, Repeats, Store,
    StoreError, Subject, Timestamp, Value,
};
use tollgate_redis::{Choice, Keys, Redis, Runs};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

async fn store(connection: MultiplexedConnection, choice: Choice) -> Redis {
    Redis::new(connection, Keys::new(PlainHash), choice).await.unwrap()
}

fn subject(number: u64) -> Subject {
    Subject::new([("number", Value::Clear(&number.to_be_bytes()))], &PlainHash)
}

fn limit() -> Limit {
    let window = FixedWindow::new(1_000, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    Limit::new("core", Algorithm::FixedWindow(window)).unwrap()
}

async fn ask(store: &Redis, subject: &Subject, ask: Ask) -> Result<Reading, StoreError> {
    let limit = limit();
    let readings = store.apply(NOW, &[Charge { limit: &limit, subject, ask }]).await?;
    Ok(readings[0])
}

const fn take() -> Ask {
    Ask::Take { cost: Cost::ONE, id: ChargeId(1) }
}

async fn run(connection: &mut MultiplexedConnection, words: &[&str]) {
    redis::cmd(words[0]).arg(&words[1..]).exec_async(connection).await.unwrap();
}

#[tokio::test]
async fn a_server_that_forgets_the_step_loses_no_charge() {
    let server = Server::start().await;
    let mut admin = server.connect().await;
    for (choice, number) in [(Choice::Best, 0), (Choice::Script, 1)] {
        let (store, subject) = (store(server.connect().await, choice).await, subject(number));
        for used in 1..=100 {
            run(&mut admin, &["SCRIPT", "FLUSH", "SYNC"]).await;
            run(&mut admin, &["FUNCTION", "FLUSH", "SYNC"]).await;
            let reading = ask(&store, &subject, take()).await.unwrap();
            assert_eq!((reading.fit, reading.used), (Fit::Now, used), "{choice:?}");
        }
    }
}

#[tokio::test]
async fn two_nodes_load_the_step_once() {
    let server = Server::start().await;
    let one = store(server.connect().await, Choice::Best).await;
    let other = store(server.connect().await, Choice::Best).await;
    assert_eq!((one.runs(), other.runs()), (Runs::Function, Runs::Function));
    assert_eq!(ask(&one, &subject(0), take()).await.unwrap().used, 1);
    assert_eq!(ask(&other, &subject(0), take()).await.unwrap().used, 2);
}

#[tokio::test]
async fn without_memory_windows_go_on_and_new_keys_are_told() {
    for choice in [Choice::Best, Choice::Script] {
        let server = Server::start_with(&["--maxmemory-policy", "noeviction"]).await;
        let (store, mut admin) =
            (store(server.connect().await, choice).await, server.connect().await);
        let taken = ask(&store, &subject(0), take()).await.unwrap();
        run(&mut admin, &["CONFIG", "SET", "maxmemory", "1"]).await;
        for used in 2..=200 {
            let reading = ask(&store, &subject(0), take()).await.unwrap();
            assert_eq!((reading.fit, reading.used), (Fit::Now, used), "{choice:?}");
            let refused = ask(&store, &subject(used), take()).await;
            assert_eq!(refused, Err(StoreError::Full), "{choice:?}");
        }
        for (repeats, left) in [(Repeats::Impossible, 199), (Repeats::Guarded, 198)] {
            let (cost, mark, id) = (Cost::ONE, taken.mark, ChargeId(1));
            let back = ask(&store, &subject(0), Ask::Refund { cost, mark, id, repeats }).await;
            let back = back.unwrap();
            assert_eq!((back.given_back, back.used), (1, left), "{choice:?}");
        }
        let peek = Ask::Take { cost: Cost::PEEK, id: ChargeId(1) };
        assert_eq!(ask(&store, &subject(9_999), peek).await.unwrap().used, 0, "{choice:?}");
        run(&mut admin, &["CONFIG", "SET", "maxmemory", "0"]).await;
        let mut sendings = 0;
        while ask(&store, &subject(10_000), take()).await == Err(StoreError::Full) {
            sendings += 1;
            assert!(sendings < 1_000, "{choice:?}: still full");
        }
    }
}

#[tokio::test]
async fn one_call_carries_many_jobs_in_their_order() {
    let server = Server::start().await;
    let store = store(server.connect().await, Choice::Best).await;
    let (limit, subject) = (limit(), subject(0));
    let charges = [Charge { limit: &limit, subject: &subject, ask: take() }];
    let calls: Vec<_> = (0..3_000).map(|_| (NOW, &charges[..])).collect();
    let answers = store.apply_all(&calls).await;
    for (used, answer) in (1_u64..).zip(&answers) {
        let reading = answer.as_ref().unwrap()[0];
        let fit = if used <= 1_000 { Fit::Now } else { Fit::At(reading.whole_at) };
        assert_eq!((reading.fit, reading.used), (fit, used.min(1_000)));
    }
    let (one, other) = (calls.len(), answers.len());
    assert_eq!(one, other);
}
