//! Why a store has no answer.

use core::fmt;

/// Why a store has no answer. A refusal is never one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// It has no room for another subject, and everything it holds is in force.
    Full,
    /// It cannot be reached.
    Unavailable,
    /// It did not answer in time.
    TimedOut,
    /// It answered what no store of this version answers.
    Corrupt,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the store is full of limits in force: give it more room",
            Self::Unavailable => "the store cannot be reached",
            Self::TimedOut => "the store did not answer in time",
            Self::Corrupt => "the store's answer makes no sense: is it of another version?",
        })
    }
}

impl core::error::Error for StoreError {}
