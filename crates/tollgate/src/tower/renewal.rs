//! Renews the permits and reservations of a request as long as the request runs.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate_core::Millis;

/// The number of renewals in one lifetime of a permit or reservation. Permits and reservations
/// therefore survive one renewal that fails.
const RENEWALS_A_TERM: u64 = 3;

/// Spawns a task that calls `renew` [`RENEWALS_A_TERM`] times in each `term` until the task is
/// aborted. Most requests end before the first renewal. Outside of a runtime, no task is spawned.
pub(super) fn until_aborted<R>(
    term: Millis,
    renew: impl Fn() -> R + Send + 'static,
) -> Option<AbortHandle>
where
    R: Future<Output = ()> + Send + 'static,
{
    let runtime = Handle::try_current().ok()?;
    let every = Duration::from_millis((term.get() / RENEWALS_A_TERM).max(1));
    let task = runtime.spawn(async move {
        loop {
            tokio::time::sleep(every).await;
            // If the store does not answer, the next renewal follows after the same interval.
            renew().await;
        }
    });
    Some(task.abort_handle())
}
