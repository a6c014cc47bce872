//! How long requests wait for a permit.

use crate::time::Millis;

/// The longest time that a request may wait.
pub const MAX_QUEUE_WAIT: Millis = Millis::from_secs(60);

/// The default number of requests that may wait for one subject's permits.
pub const DEFAULT_QUEUE_LENGTH: usize = 100;

/// The largest number of requests that may wait for one subject's permits.
pub const MAX_QUEUE_LENGTH: usize = 1_000;

/// How long requests wait if only concurrency limits refuse them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The longest time that a request waits.
    pub wait: Millis,
    /// The most requests of one subject that wait at a time on each node. Further ones are refused
    /// at once.
    pub length: usize,
}
