//! The atomic counters that threads share. With `--cfg shuttle`, these types are those of the crate
//! `shuttle`, which runs the threads of the tests in `schedules` in chosen orders.

#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicU64, AtomicUsize};
#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize};
