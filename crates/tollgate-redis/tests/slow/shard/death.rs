//! Servers that are killed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

const CALLERS: usize = 20;
/// The number of answered calls before the server is killed, and after it has restarted.
const ANSWERED: u64 = 500;

in_every_way! {
    a_server_that_is_killed_under_load_doubles_nothing
}

/// The results of callers that run in a loop.
#[derive(Default)]
struct Load {
    over: AtomicBool,
    answered: AtomicU64,
    /// The number of callers that received an error.
    failed: AtomicU64,
}

impl Load {
    /// Runs one caller. Returns the counts that the caller received before its first error, and the
    /// counts after that error.
    async fn call(self: Arc<Self>, client: Arc<Client>) -> [Vec<u64>; 2] {
        let (mut lives, mut life) = ([Vec::new(), Vec::new()], 0);
        while !self.over.load(Ordering::SeqCst) {
            match client.take(0, 1).await {
                Ok(reading) => {
                    lives[life].push(reading.used);
                    self.answered.fetch_add(1, Ordering::SeqCst);
                }
                Err(BatcherError::Lost | BatcherError::Unavailable) => {
                    if life == 0 {
                        self.failed.fetch_add(1, Ordering::SeqCst);
                    }
                    life = 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(other) => panic!("a killed server caused {other:?}"),
            }
        }
        lives
    }

    fn answered(&self) -> u64 {
        self.answered.load(Ordering::SeqCst)
    }
}

async fn a_server_that_is_killed_under_load_doubles_nothing(way: Way) {
    let mut site = Site::start(way, 1 << 40).await;
    let load = Arc::<Load>::default();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(Arc::clone(&load).call(Arc::clone(&site.client)));
    }
    until(|| load.answered() >= ANSWERED).await;
    let client = Arc::clone(&site.client);
    let losing = client.recorder.begin_loss();
    site.server.kill();
    until(|| load.failed.load(Ordering::SeqCst) == CALLERS as u64).await;
    until(|| site.client.circuit_state() == CircuitState::Open).await;

    let before = load.answered();
    site.start_again().await;
    drop(losing);
    until(|| load.answered() >= before + ANSWERED).await;
    load.over.store(true, Ordering::SeqCst);
    let [mut first, mut second] = [Vec::new(), Vec::new()];
    for [one, other] in callers.join_all().await {
        first.extend(one);
        second.extend(other);
    }
    first.sort_unstable();
    second.sort_unstable();
    // Only the last call, which was in flight when the server died, was lost.
    assert_eq!(first, (1..=first.len() as u64).collect::<Vec<_>>());
    // The server stored nothing, so the count started again from zero. No later count was lost.
    assert_eq!(second, (1..=second.len() as u64).collect::<Vec<_>>());
    assert_eq!(client.take(0, 0).await.unwrap().used, second.len() as u64);
    client.assert_sound();
}
