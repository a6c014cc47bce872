//! The types of the locks and counters that the store uses.
//!
//! With `--cfg shuttle`, these are the types of the crate `shuttle`, which controls the
//! interleaving of the threads of a test. Only the tests in the module `schedules` are built with
//! this flag; `./test` runs these tests.

#[cfg(not(shuttle))]
pub(super) use parking_lot::{Mutex, MutexGuard};
#[cfg(shuttle)]
pub(super) use shuttle::sync::{MutexGuard, atomic::AtomicUsize};
#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::AtomicUsize;

/// A mutex that a panic does not poison, like the mutex of `parking_lot`.
#[cfg(shuttle)]
pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

#[cfg(shuttle)]
impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
