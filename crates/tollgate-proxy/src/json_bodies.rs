//! Buffering of JSON request bodies for the layer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest body that is buffered, in bytes.
pub(crate) const MAX_READ_AHEAD: usize = 256 * 1024;

/// The largest number of bytes in all buffered bodies together. A body that would exceed this total
/// is not buffered.
pub(crate) const MAX_READ_AHEAD_TOGETHER: usize = 64 * 1024 * 1024;

/// Whether the proxy reads JSON request bodies before the requests pass through the layer. A body
/// that was read is a [`JsonBody`](tollgate::tower::JsonBody) in the extensions of its request. By
/// default no body is read. Clones share the setting, and a change applies to all later requests.
///
/// A body is not buffered if it is longer than 256 KiB, if it takes longer than 5 s to arrive, or
/// if all buffered bodies together would exceed 64 MiB. The body of a client that waits for `100
/// Continue` is not buffered either, because the proxy does not ask for the body of a request that
/// might be refused. Every body is forwarded unchanged.
#[derive(Clone, Debug)]
pub struct JsonBodyBuffering(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    is_enabled: AtomicBool,
    room: Arc<Semaphore>,
}

/// A reservation of memory for one buffered body. The reservation ends when the upstream has
/// accepted the buffered bytes.
#[derive(Debug)]
pub(crate) struct ReadAheadPermit {
    _bytes: OwnedSemaphorePermit,
}

impl JsonBodyBuffering {
    /// Enables buffering for all later requests.
    pub fn enable(&self) {
        self.0.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Disables buffering for all later requests.
    pub fn disable(&self) {
        self.0.is_enabled.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_enabled.load(Ordering::Relaxed)
    }

    /// Reserves memory for a body of at most `bytes`. Returns `None` if the remaining memory is not
    /// enough.
    pub(crate) fn acquire(&self, bytes: usize) -> Option<ReadAheadPermit> {
        let bytes = u32::try_from(bytes).ok()?;
        let permit = Arc::clone(&self.0.room).try_acquire_many_owned(bytes).ok()?;
        Some(ReadAheadPermit { _bytes: permit })
    }
}

impl Default for JsonBodyBuffering {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(MAX_READ_AHEAD_TOGETHER));
        Self(Arc::new(Shared { is_enabled: AtomicBool::new(false), room }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_bytes_at_once() {
        let bodies = JsonBodyBuffering::default();
        let whole = bodies.acquire(MAX_READ_AHEAD_TOGETHER).expect("room for all");
        assert!(bodies.clone().acquire(1).is_none());
        drop(whole);
        assert!(bodies.acquire(1).is_some());
    }
}
