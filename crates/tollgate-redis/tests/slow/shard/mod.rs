//! The store on a shard: exact under many callers, and honest under faults.

mod callers;
mod clock;
mod death;
mod failover;
mod flush;
mod foreign;
mod freeze;
mod herd;
mod memory;
mod names;
mod reserved;
mod site;
mod wall_clock;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_core::reading::Admission;
use tollgate_core::{Reading, Timestamp};
use tollgate_redis::{BatcherError, CircuitState};

use crate::kit::{Server, Version};
use site::{Client, Site, Way, in_every_way, patient};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The deadline of calls that a server is expected to leave unanswered.
const SHORT: Duration = Duration::from_millis(15);
/// Between two looks at whether something has happened.
const PAUSE: Duration = Duration::from_millis(1);
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Waits for something that has to happen, however busy the machine is.
async fn until(condition: impl Fn() -> bool) {
    let happens = async {
        while !condition() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, happens).await.expect("it did not happen");
}

/// How many callers [`calls_during`] has, and how often each of them calls.
const CALLERS: u64 = 50;
const CALLS: u64 = 20;

/// One unit at a time from many callers at once, while `disturb` happens again and again, each time
/// after an answer at least; returns what each call was told, and how often it happened.
async fn calls_during<D: Future<Output = ()>>(
    client: &Arc<Client>,
    disturb: impl Fn(u64) -> D,
) -> (Vec<Result<Reading, BatcherError>>, u64) {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let client = Arc::clone(client);
        callers.spawn(async move {
            let mut told = Vec::new();
            for _ in 0..CALLS {
                told.push(client.take(0, 1).await);
            }
            told
        });
    }
    let mut times = 0;
    while client.answered() < CALLERS * CALLS {
        let answered = client.answered();
        disturb(times).await;
        times += 1;
        until(|| client.answered() > answered || answered == CALLERS * CALLS).await;
    }
    (callers.join_all().await.concat(), times)
}

/// How often each count was told to a caller that was admitted.
fn counts(told: &[Result<Reading, BatcherError>]) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for reading in told.iter().map(|told| told.as_ref().expect("the store answers")) {
        if reading.admission == Admission::Now {
            *counts.entry(reading.used).or_insert(0) += 1;
        }
    }
    counts
}

/// `counts`, each told once.
fn once(counts: impl IntoIterator<Item = u64>) -> BTreeMap<u64, u64> {
    counts.into_iter().map(|count| (count, 1)).collect()
}
