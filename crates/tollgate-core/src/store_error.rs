//! The errors of a store call.

use core::fmt;

/// The reason why a store returned no result. A refusal is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The store has no room for a new subject, because all its entries are in use.
    Full,
    /// The store cannot be reached or executes no charges now. Nothing was charged.
    Unavailable,
    /// The store did not answer in time. It is unknown whether the charges of the call were
    /// counted.
    TimedOut,
    /// The store does not permit its user to execute the call. Nothing was changed. In Redis, this
    /// is also the error of a call that needs a function of a library which is not loaded, if the
    /// user may not execute a script instead.
    NotPermitted,
    /// The store's answer is not valid for this version of Tollgate.
    Corrupt,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the store has no room for another counter: increase its bounds",
            Self::Unavailable => "the store cannot be reached",
            Self::TimedOut => "the store did not answer in time",
            Self::NotPermitted => {
                "the user of the store lacks a permission, or may not load code and the library of \
                 functions is missing: grant the permissions of deploy/redis-acl.txt, or load the \
                 library that `tollgate shards --library` prints"
            }
            Self::Corrupt => {
                "the store returned an invalid answer: check that all nodes run compatible versions"
            }
        })
    }
}

impl core::error::Error for StoreError {}
