//! The atomic counters that threads share. With `--cfg shuttle`, the types come from the crate
//! `shuttle`, which chooses how the threads of the tests in `schedules` interleave.

#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicU64, AtomicUsize};
#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize};
