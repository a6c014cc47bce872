//! The key `store.memory`: the store in the memory of one process.

use crate::decode::{Integer, Size, keys};

keys! {
    /// The bounds of the memory store.
    struct Memory as "memory bounds" {
        /// The largest number of counters. By default 1,000,000.
        max_entries: Integer,
        /// The largest size of all counters together. By default `64MiB`.
        max_bytes: Size,
    }
}
