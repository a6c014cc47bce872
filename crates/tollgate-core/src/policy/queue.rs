//! The queue in which requests wait for a permit.

use crate::time::Millis;

/// The longest time that a policy can let a request wait.
pub const MAX_QUEUE_WAIT: Millis = Millis::from_secs(60);

/// The default number of requests that can wait for the permits of one subject.
pub const DEFAULT_QUEUE_LENGTH: usize = 100;

/// The largest number of requests that a policy can let wait for the permits of one subject.
pub const MAX_QUEUE_LENGTH: usize = 1_000;

/// The settings of the queue of a rule. Requests that only concurrency limits refuse wait in the
/// queue for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The longest time that a request waits.
    pub wait: Millis,
    /// The largest number of requests of one subject that wait on each node at a time. Further
    /// requests are refused without waiting.
    pub length: usize,
}
