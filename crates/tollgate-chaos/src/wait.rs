//! Bounded waiting for expected events.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::ChaosError;

/// The longest time to wait for an event. Any expected event takes less time, even on a busy
/// machine. The slowest event is a retried failover: sentinels wait half a minute before they
/// retry.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until `condition` is true, for at most [`WAIT_TIMEOUT`]. `what` describes the event in the
/// error message, for example "that a replica …".
pub(crate) async fn until(
    what: &'static str,
    condition: impl AsyncFn() -> Result<bool, ChaosError>,
) -> Result<(), ChaosError> {
    let started = Instant::now();
    while !condition().await? {
        if started.elapsed() > WAIT_TIMEOUT {
            return Err(ChaosError::WaitTimedOut(what, WAIT_TIMEOUT));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
