//! The last error of a link.

use std::sync::Arc;

use parking_lot::Mutex;

/// The reason why the last attempt to connect failed or the last connection was lost. Several links
/// to the same server can share this value.
#[derive(Debug)]
pub struct LastError<E>(Arc<Mutex<Option<E>>>);

impl<E> Default for LastError<E> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<E> Clone for LastError<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E> LastError<E> {
    /// Returns the last error, or `None` if there was no error.
    #[must_use]
    pub fn get(&self) -> Option<E>
    where
        E: Clone,
    {
        self.0.lock().clone()
    }

    pub(crate) fn set(&self, error: E) {
        *self.0.lock() = Some(error);
    }
}
