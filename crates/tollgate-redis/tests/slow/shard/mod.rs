//! The store on a shard: exact with many callers, and correct under faults.

mod callers;
mod clock;
mod death;
mod failover;
mod flush;
mod foreign;
mod freeze;
mod herd;
mod latency;
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
pub(crate) use site::Way;
use site::{Client, Site, in_every_way, in_every_way_of_keys, patient};

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
/// The deadline of calls that the server is expected to leave unanswered.
const SHORT: Duration = Duration::from_millis(15);
/// The pause between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(1);
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Waits until `condition` is true.
async fn until(condition: impl Fn() -> bool) {
    let happens = async {
        while !condition() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, happens).await.expect("it did not happen");
}

/// The number of callers of [`calls_during`]. `CALLS` is the number of calls of each caller.
const CALLERS: u64 = 50;
const CALLS: u64 = 20;

/// Runs many concurrent callers that charge one unit at a time while `disturb` runs repeatedly,
/// each time after at least one answer. Returns the result of each call, and how often `disturb`
/// ran.
async fn calls_during<D: Future<Output = ()>>(
    client: &Arc<Client>,
    disturb: impl Fn(u64) -> D,
) -> (Vec<Result<Reading, BatcherError>>, u64) {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let client = Arc::clone(client);
        callers.spawn(async move {
            let mut results = Vec::new();
            for _ in 0..CALLS {
                results.push(client.take(0, 1).await);
            }
            results
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

/// Returns how often admitted callers received each count.
fn counts(results: &[Result<Reading, BatcherError>]) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for reading in results.iter().map(|results| results.as_ref().expect("the store answers")) {
        if reading.admission == Admission::Now {
            *counts.entry(reading.used).or_insert(0) += 1;
        }
    }
    counts
}

/// Maps each of `counts` to the frequency one.
fn once(counts: impl IntoIterator<Item = u64>) -> BTreeMap<u64, u64> {
    counts.into_iter().map(|count| (count, 1)).collect()
}
