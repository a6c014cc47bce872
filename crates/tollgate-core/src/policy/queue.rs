//! How long requests wait for a place in flight.

use crate::time::Millis;

/// The longest that a request may wait.
pub const MAX_QUEUE_WAIT: Millis = Millis::from_secs(60);

/// How many may wait for one subject's places where nothing says otherwise.
pub const DEFAULT_QUEUE_LENGTH: usize = 100;

/// The most that may wait for one subject's places.
pub const MAX_QUEUE_LENGTH: usize = 1_000;

/// How long requests wait where nothing but concurrency limits refuses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// How long each of them waits at most.
    pub wait: Millis,
    /// How many of one subject wait at a time, on each node. Whoever comes then is refused at once.
    pub length: usize,
}
