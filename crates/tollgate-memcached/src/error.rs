//! The errors of store calls.

use std::fmt;

use tollgate_core::StoreError;

/// The reason why the memcached store did not answer a call.
///
/// After [`TimedOut`](Self::TimedOut) and [`Lost`](Self::Lost) the call may have been charged.
/// After every other error nothing was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemcachedError {
    /// The server cannot be reached. No command was sent.
    Unavailable,
    /// Too many commands are waiting for the server. No command was sent.
    Overloaded,
    /// The server did not answer in time. Commands that were written may have been executed.
    TimedOut,
    /// The connection was closed before the answer. Commands that were written may have been
    /// executed.
    Lost,
    /// Other nodes changed the item [`MAX_ATTEMPTS`](crate::MAX_ATTEMPTS) times between the read
    /// and the write. Nothing was charged.
    Contended,
    /// The server has no memory for the item. Nothing was charged.
    Full,
    /// The server rejected the command as unknown or malformed. Nothing was charged.
    Refused,
}

impl MemcachedError {
    /// Returns whether it is certain that nothing was charged.
    #[must_use]
    pub const fn proves_nothing_changed(&self) -> bool {
        !matches!(self, Self::TimedOut | Self::Lost)
    }
}

impl fmt::Display for MemcachedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "memcached cannot be reached: check that it is running",
            Self::Overloaded => {
                "too many calls wait for memcached: configure more connections or servers"
            }
            Self::TimedOut => "memcached did not answer in time",
            Self::Lost => "the connection to memcached ended before the answer",
            Self::Contended => {
                "other nodes changed the item at every attempt: keep a limit that is charged so \
                 often in Redis, or divide its subjects"
            }
            Self::Full => "memcached has no memory for the item: increase its option -m or -I",
            Self::Refused => {
                "memcached does not support the meta commands: use version 1.6 or later"
            }
        })
    }
}

impl std::error::Error for MemcachedError {}

impl From<MemcachedError> for StoreError {
    fn from(error: MemcachedError) -> Self {
        match error {
            MemcachedError::Full => Self::Full,
            // The units may have been charged. So no node may charge the units again, unlike after
            // `Unavailable`.
            MemcachedError::TimedOut | MemcachedError::Lost => Self::TimedOut,
            MemcachedError::Refused => Self::Corrupt,
            MemcachedError::Unavailable
            | MemcachedError::Overloaded
            | MemcachedError::Contended => Self::Unavailable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a second charge of the store for units that a node might already have
    /// charged.
    #[test]
    fn a_lost_connection_does_not_prove_that_nothing_was_charged() {
        use MemcachedError::{Contended, Full, Lost, Overloaded, Refused, TimedOut, Unavailable};
        for error in [Contended, Full, Lost, Overloaded, Refused, TimedOut, Unavailable] {
            let proves = matches!(error.into(), StoreError::Unavailable | StoreError::Full);
            assert!(!proves || error.proves_nothing_changed(), "{error:?}");
        }
    }
}
