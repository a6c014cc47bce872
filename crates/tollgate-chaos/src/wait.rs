//! Waiting for what has to happen, with an end.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::ChaosError;

/// Longer than anything takes that is waited for on a busy machine: sentinels that had to wait for
/// their turn themselves promote nobody for half a minute.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until `condition` holds, for [`PATIENCE`] at most. `what` names it: "that a replica …".
pub(crate) async fn until(
    what: &'static str,
    condition: impl AsyncFn() -> Result<bool, ChaosError>,
) -> Result<(), ChaosError> {
    let begun = Instant::now();
    while !condition().await? {
        if begun.elapsed() > PATIENCE {
            return Err(ChaosError::NotHappened(what, PATIENCE));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
