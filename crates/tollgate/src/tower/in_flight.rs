//! What a request holds while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate_core::{Millis, Store};

use super::background;
use crate::limiter::Limiter;
use crate::receipt::Receipt;

/// A lease is renewed each time that this part of it has passed: it outlives a renewal that fails.
const RENEWALS_A_LEASE: u64 = 3;

/// The leases of a request in flight: renewed while this lives, and given back when it is dropped,
/// at the end of the answer's body or of the connection that it was upgraded to, when the client is
/// gone, or when the service panics.
pub(super) struct InFlight(Option<Held>);

struct Held {
    /// None outside of a runtime, where leases end by their expiry.
    renewing: Option<AbortHandle>,
    give_back: Box<dyn FnOnce() + Send + Sync>,
}

impl InFlight {
    /// Holds nothing.
    pub(super) const fn nothing() -> Self {
        Self(None)
    }

    /// Holds `leases` of `limiter`.
    pub(super) fn new<S: Store + 'static>(limiter: Arc<Limiter<S>>, leases: Receipt) -> Self {
        let Some(lease) = leases.shortest_lease() else { return Self(None) };
        let leases = Arc::new(leases);
        let renewing = renew_until_aborted(&limiter, &leases, lease);
        // A store that has no answer keeps them until they expire.
        let give_back = Box::new(move || {
            background::finish(async move {
                let _ = limiter.give_back(limiter.now(), &leases).await;
            });
        });
        Self(Some(Held { renewing, give_back }))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(Held { renewing, give_back }) = self.0.take() {
            // A renewal under way that comes after the end finds no lease, and makes none.
            renewing.inspect(AbortHandle::abort);
            give_back();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("holds", &self.0.is_some()).finish()
    }
}

/// A task that sleeps until it is aborted or a part of the lease has passed. Most requests end
/// before.
fn renew_until_aborted<S: Store + 'static>(
    limiter: &Arc<Limiter<S>>,
    leases: &Arc<Receipt>,
    lease: Millis,
) -> Option<AbortHandle> {
    let runtime = Handle::try_current().ok()?;
    let (limiter, leases) = (Arc::clone(limiter), Arc::clone(leases));
    let every = Duration::from_millis((lease.get() / RENEWALS_A_LEASE).max(1));
    let task = runtime.spawn(async move {
        loop {
            tokio::time::sleep(every).await;
            // Without an answer it is tried again when as much has passed once more.
            let _ = limiter.renew(&leases).await;
        }
    });
    Some(task.abort_handle())
}
