//! Shards with sentinels, and charges to replaced primaries.

mod failover;
mod losses;
mod sentinels;
mod watched;

use std::time::Duration;

use tollgate_core::Timestamp;

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
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
