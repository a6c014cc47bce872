//! A percentage that can change while traffic runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use tollgate_core::Percent;

/// A shared [`Percent`] with the number of its changes. Clones share one value.
#[derive(Clone, Debug)]
pub struct RolloutPercentage(Arc<AtomicU64>);

/// The increment that counts one change in the shared number. The lowest two bytes of the shared
/// number are the percentage in parts of ten thousand, and the other bytes count the changes.
const CHANGE: u64 = 1 << 16;

impl RolloutPercentage {
    /// Creates a percentage with the value `percent`.
    #[must_use]
    pub fn new(percent: Percent) -> Self {
        Self(Arc::new(AtomicU64::new(percent.parts().into())))
    }

    /// Returns the current percentage.
    #[must_use]
    pub fn get(&self) -> Percent {
        self.read().0
    }

    /// Changes the percentage. Does nothing if the percentage already has this value.
    pub fn set(&self, percent: Percent) {
        let turned = |state: u64| {
            let is_there = state % CHANGE == u64::from(percent.parts());
            (!is_there).then(|| state - state % CHANGE + CHANGE + u64::from(percent.parts()))
        };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, turned);
    }

    /// Returns the current percentage, and the number of times that it was changed.
    #[must_use]
    pub fn read(&self) -> (Percent, u64) {
        let state = self.0.load(Ordering::Relaxed);
        (Percent::of_ten_thousand((state % CHANGE) as u16).unwrap_or(Percent::ALL), state / CHANGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_counts_its_changes() {
        let five = Percent::new(5).unwrap();
        let percentage = RolloutPercentage::new(five);
        percentage.set(five);
        assert_eq!(percentage.read(), (five, 0));
        percentage.clone().set(Percent::ALL);
        percentage.set(Percent::NONE);
        assert_eq!((percentage.read(), percentage.get()), ((Percent::NONE, 2), Percent::NONE));
    }
}
