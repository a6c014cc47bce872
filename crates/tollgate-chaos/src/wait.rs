//! Bounded waiting for expected events.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::ChaosError;

/// Longer than any event that is waited for on a busy machine. If sentinels must wait before they
/// retry, they promote no server for half a minute.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until `condition` is true, for at most [`PATIENCE`]. `what` names it: "that a replica …".
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
