//! The counters that threads share. With `--cfg shuttle` they are those of `shuttle`, which runs the
//! threads of the tests in `schedules` in chosen orders.

#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicU64, AtomicUsize};
#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize};
