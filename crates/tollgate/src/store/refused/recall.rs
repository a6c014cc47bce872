//! How long refusals are remembered, to be set while they are.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Millis;

use super::Recall;

/// A [`Recall`] that is read and set from any thread: its milliseconds, or one of two numbers that
/// no [`Millis`] reaches.
pub(super) struct Set(AtomicU64);

const OFF: u64 = u64::MAX;
const UNTIL_RESET: u64 = u64::MAX - 1;

impl Set {
    pub(super) const fn new(recall: Recall) -> Self {
        Self(AtomicU64::new(encode(recall)))
    }

    pub(super) fn get(&self) -> Recall {
        match self.0.load(Ordering::Relaxed) {
            OFF => Recall::Off,
            UNTIL_RESET => Recall::UntilReset,
            millis => Recall::Briefly(Millis::new(millis)),
        }
    }

    pub(super) fn set(&self, recall: Recall) {
        self.0.store(encode(recall), Ordering::Relaxed);
    }
}

const fn encode(recall: Recall) -> u64 {
    match recall {
        Recall::Off => OFF,
        Recall::UntilReset => UNTIL_RESET,
        Recall::Briefly(hold) => hold.get(),
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read() {
        let set = Set::new(Recall::Off);
        let longest = Recall::Briefly(Millis::new(u64::MAX));
        for recall in [Recall::UntilReset, longest, Recall::Briefly(Millis::ZERO), Recall::Off] {
            set.set(recall);
            assert_eq!(set.get(), recall);
        }
    }
}
