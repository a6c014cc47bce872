//! The size of the state of one subject.

use super::{Algorithm, Limit};
use crate::algo::{concurrency, sliding_log, sliding_window};

impl Limit {
    /// Returns the largest size in bytes of one subject's list of blocks, entries or permits.
    /// Returns 0 for an algorithm whose state contains no list.
    #[must_use]
    pub fn largest_state(&self) -> u64 {
        match &self.algorithm {
            Algorithm::FixedWindow(_) | Algorithm::TwoBucket(_) | Algorithm::TokenBucket(_) => 0,
            Algorithm::SlidingWindow(limit) => {
                limit.blocks() * size_of::<sliding_window::Block>() as u64
            }
            Algorithm::SlidingLog(limit) => {
                let entries = limit.quota().saturating_add(self.reservation.overdraft);
                entries.min(sliding_log::MAX_QUOTA) * size_of::<sliding_log::Entry>() as u64
            }
            Algorithm::Concurrency(limit) => {
                limit.quota() * size_of::<concurrency::Permit>() as u64
            }
        }
    }
}
