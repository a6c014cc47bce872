//! A percentage that is turned while traffic runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use tollgate_core::Percent;

/// A [`Percent`] that its holders read and turn, and how often it was turned. Clones are one dial.
#[derive(Clone, Debug)]
pub struct Dial(Arc<AtomicU64>);

/// The lowest two bytes are the percentage in parts of ten thousand, the rest counts the turns.
const TURN: u64 = 1 << 16;

impl Dial {
    /// A dial at `percent`.
    #[must_use]
    pub fn new(percent: Percent) -> Self {
        Self(Arc::new(AtomicU64::new(percent.parts().into())))
    }

    /// Where it is.
    #[must_use]
    pub fn get(&self) -> Percent {
        self.read().0
    }

    /// Turns it. Where it is there already, nothing happens.
    pub fn set(&self, percent: Percent) {
        let turned = |state: u64| {
            let is_there = state % TURN == u64::from(percent.parts());
            (!is_there).then(|| state - state % TURN + TURN + u64::from(percent.parts()))
        };
        let _ = self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, turned);
    }

    /// Where it is, and how often it was turned to get there.
    pub(super) fn read(&self) -> (Percent, u64) {
        let state = self.0.load(Ordering::Relaxed);
        (Percent::of_ten_thousand((state % TURN) as u16).unwrap_or(Percent::ALL), state / TURN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dial_counts_its_turns() {
        let five = Percent::new(5).unwrap();
        let dial = Dial::new(five);
        dial.set(five);
        assert_eq!(dial.read(), (five, 0));
        dial.clone().set(Percent::ALL);
        dial.set(Percent::NONE);
        assert_eq!((dial.read(), dial.get()), ((Percent::NONE, 2), Percent::NONE));
    }
}
