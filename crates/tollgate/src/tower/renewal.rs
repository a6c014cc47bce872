//! What is held for a time, held on to for as long as it is needed.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate_core::Millis;

/// What is held is renewed each time that this part of it has passed: it outlives a renewal that
/// fails.
const RENEWALS_A_TERM: u64 = 3;

/// A task that sleeps until it is aborted or a part of the term has passed. Most requests end
/// before. None outside of a runtime.
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
            // Without an answer it is tried again when as much has passed once more.
            renew().await;
        }
    });
    Some(task.abort_handle())
}
