//! The settings of requests that wait for a permit.

use crate::time::Millis;

/// The longest time that a policy can let a request wait.
pub const MAX_QUEUE_WAIT: Millis = Millis::from_secs(60);

/// The default of the largest number of requests that can wait for one subject's permits.
pub const DEFAULT_QUEUE_LENGTH: usize = 100;

/// The largest number of requests that a policy can let wait for one subject's permits.
pub const MAX_QUEUE_LENGTH: usize = 1_000;

/// The settings of requests that wait for a permit because only concurrency limits refuse them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The longest time that a request waits.
    pub wait: Millis,
    /// The largest number of requests of one subject that wait at a time on each node. Further
    /// requests are refused at once.
    pub length: usize,
}
