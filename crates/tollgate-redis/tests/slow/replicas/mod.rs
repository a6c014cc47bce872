//! Who answers calls that only read, and with what.

mod faults;
mod lag;
mod pair;
mod readings;
mod resync;
mod turns;

use std::time::Duration;

use tollgate_core::Timestamp;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at whether something has happened.
const PAUSE: Duration = Duration::from_millis(1);
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// The length of the window that is looked at, in milliseconds.
const WINDOW: u64 = 3_600_000;

/// Waits for something that has to happen, however busy the machine is.
async fn until(condition: impl Fn() -> bool) {
    let happens = async {
        while !condition() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, happens).await.expect("it did not happen");
}
