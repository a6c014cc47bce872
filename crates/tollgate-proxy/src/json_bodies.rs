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
pub struct JsonBodies(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    are_read: AtomicBool,
    room: Arc<Semaphore>,
}

/// A place for the bytes of one body, until the upstream took them.
#[derive(Debug)]
pub(crate) struct Room {
    _bytes: OwnedSemaphorePermit,
}

impl JsonBodies {
    /// Reads them.
    pub fn read(&self) {
        self.0.are_read.store(true, Ordering::Relaxed);
    }

    /// Lets them pass unread.
    pub fn pass(&self) {
        self.0.are_read.store(false, Ordering::Relaxed);
    }

    pub(crate) fn are_read(&self) -> bool {
        self.0.are_read.load(Ordering::Relaxed)
    }

    /// Room for a body of at most `bytes`, if there is some.
    pub(crate) fn room(&self, bytes: usize) -> Option<Room> {
        let bytes = u32::try_from(bytes).ok()?;
        let permit = Arc::clone(&self.0.room).try_acquire_many_owned(bytes).ok()?;
        Some(Room { _bytes: permit })
    }
}

impl Default for JsonBodies {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(MAX_READ_AHEAD_TOGETHER));
        Self(Arc::new(Shared { are_read: AtomicBool::new(false), room }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_bytes_at_once() {
        let bodies = JsonBodies::default();
        let whole = bodies.room(MAX_READ_AHEAD_TOGETHER).expect("room for all");
        assert!(bodies.clone().room(1).is_none());
        drop(whole);
        assert!(bodies.room(1).is_some());
    }
}
