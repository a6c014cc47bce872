//! The key `store.memory`: the store in the memory of one process.

use crate::decode::{Size, Whole, keys};

keys! {
    /// The bounds of the memory store.
    struct Memory as "memory bounds" {
        /// The most counters. By default 1,000,000.
        max_entries: Whole,
        /// The most bytes. By default `64MiB`.
        max_bytes: Size,
    }
}
