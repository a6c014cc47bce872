//! Why a call has no answer.

use std::fmt;

use tollgate_core::StoreError;

/// Why the limits in memcached have no answer to a call.
///
/// Only [`TimedOut`](Self::TimedOut) and [`Lost`](Self::Lost) leave open whether it was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemcachedError {
    /// The server cannot be reached: nothing was asked.
    Unavailable,
    /// More is waiting for the server than is let wait: nothing was asked.
    Overloaded,
    /// The server did not answer in time. What was written may count.
    TimedOut,
    /// The connection ended before the answer. What was written may count.
    Lost,
    /// Other nodes changed the item [`MAX_ATTEMPTS`](crate::MAX_ATTEMPTS) times between reading
    /// and writing: nothing was charged.
    Contended,
    /// The server has no memory for the item: nothing was charged.
    Full,
    /// The server does not understand what it is asked: nothing was charged.
    Refused,
}

impl MemcachedError {
    /// Whether nothing was charged for sure.
    #[must_use]
    pub const fn proves_nothing_changed(&self) -> bool {
        !matches!(self, Self::TimedOut | Self::Lost)
    }
}

impl fmt::Display for MemcachedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "memcached cannot be reached: is it running?",
            Self::Overloaded => {
                "too much waits for memcached: give it more connections, or more servers"
            }
            Self::TimedOut => "memcached did not answer in time",
            Self::Lost => "the connection to memcached ended before the answer",
            Self::Contended => {
                "other nodes changed the item again and again: spread so hot a limit, or keep it in Redis"
            }
            Self::Full => "memcached has no memory for the item: raise its -m, or its -I",
            Self::Refused => "memcached does not know the meta commands: 1.6 does",
        })
    }
}

impl std::error::Error for MemcachedError {}

impl From<MemcachedError> for StoreError {
    fn from(error: MemcachedError) -> Self {
        match error {
            MemcachedError::Full => Self::Full,
            MemcachedError::TimedOut => Self::TimedOut,
            MemcachedError::Refused => Self::Corrupt,
            MemcachedError::Unavailable
            | MemcachedError::Overloaded
            | MemcachedError::Lost
            | MemcachedError::Contended => Self::Unavailable,
        }
    }
}
