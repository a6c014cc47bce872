//! Renews permits and reservations as long as a request runs.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate_core::Millis;

/// The part of the term after which permits and reservations are renewed. They survive one renewal
/// that fails.
const RENEWALS_A_TERM: u64 = 3;

/// A task that sleeps until a part of the term has passed or the task is aborted. Most requests end
/// before that. There is no task outside of a runtime.
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
            // If the store does not answer, the next attempt follows after the same time.
            renew().await;
        }
    });
    Some(task.abort_handle())
}
