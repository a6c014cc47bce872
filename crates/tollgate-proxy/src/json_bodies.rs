//! Whether the layer wants to know what requests have in their bodies.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest body that is read before its request passes on, in bytes.
pub(crate) const MAX_READ_AHEAD: usize = 256 * 1024;

/// The most bytes that all of them together may take; past it, bodies pass on unread.
pub(crate) const MAX_READ_AHEAD_TOGETHER: usize = 64 * 1024 * 1024;

/// Whether JSON bodies of requests are read before these pass through the layer, as
/// [`JsonBody`](tollgate::tower::JsonBody). By default they are not. Clones are the same: what one of
/// them is set to counts for requests that come from then on.
///
/// A body that is longer than 256 KiB, slower than 5 s, or beyond the 64 MiB that all of them may take
/// together passes on unread, as does one that waits for `100 Continue`: nobody is asked for the body
/// of a request that may be refused. Every body passes on unchanged.
#[derive(Clone, Debug)]
pub struct JsonBodyBuffering(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    is_enabled: AtomicBool,
    room: Arc<Semaphore>,
}

/// A place for the bytes of one body, until the upstream took them.
#[derive(Debug)]
pub(crate) struct ReadAheadPermit {
    _bytes: OwnedSemaphorePermit,
}

impl JsonBodyBuffering {
    /// Reads them.
    pub fn enable(&self) {
        self.0.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Lets them pass unread.
    pub fn disable(&self) {
        self.0.is_enabled.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_enabled.load(Ordering::Relaxed)
    }

    /// Room for a body of at most `bytes`, if there is some.
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
