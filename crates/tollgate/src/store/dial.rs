//! A percentage that is turned while traffic runs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A whole number of hundredths, 0 … 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// Nobody.
    pub const NONE: Self = Self(0);
    /// Everybody.
    pub const ALL: Self = Self(100);

    /// So many hundredths, or `None` above 100.
    #[must_use]
    pub const fn new(hundredths: u8) -> Option<Self> {
        if hundredths > 100 { None } else { Some(Self(hundredths)) }
    }

    /// The whole number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Whether a subject is among them whose hash, spread evenly over 64 bits, is `hash`. Who is
    /// among few is among more, too.
    #[must_use]
    pub const fn includes(self, hash: u64) -> bool {
        // The hash as a part of one, times 100, rounded down.
        ((hash as u128 * 100) >> 64) < self.0 as u128
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl FromStr for Percent {
    type Err = PercentError;

    fn from_str(text: &str) -> Result<Self, PercentError> {
        let digits = text.strip_suffix('%').unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = if plain { digits.parse().ok() } else { None };
        number.and_then(Self::new).ok_or(PercentError)
    }
}

/// The text is no percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentError;

impl fmt::Display for PercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a percentage is a whole number from 0% to 100%")
    }
}

impl std::error::Error for PercentError {}

/// A [`Percent`] that its holders read and turn, and how often it was turned. Clones are one dial.
#[derive(Clone, Debug)]
pub struct Dial(Arc<AtomicU64>);

/// The lowest byte is the percentage, the rest counts the turns.
const TURN: u64 = 1 << 8;

impl Dial {
    /// A dial at `percent`.
    #[must_use]
    pub fn new(percent: Percent) -> Self {
        Self(Arc::new(AtomicU64::new(percent.0.into())))
    }

    /// Where it is.
    #[must_use]
    pub fn get(&self) -> Percent {
        self.read().0
    }

    /// Turns it. Where it is there already, nothing happens.
    pub fn set(&self, percent: Percent) {
        let turned = |state: u64| {
            let is_there = state % TURN == u64::from(percent.0);
            (!is_there).then(|| state - state % TURN + TURN + u64::from(percent.0))
        };
        let _ = self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, turned);
    }

    /// Where it is, and how often it was turned to get there.
    pub(super) fn read(&self) -> (Percent, u64) {
        let state = self.0.load(Ordering::Relaxed);
        (Percent((state % TURN) as u8), state / TURN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_among_few_is_among_more() {
        for hash in (0..10_000).map(|step: u64| step.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let first = (0..=100).find(|percent| Percent(*percent).includes(hash));
            let later = (first.unwrap_or(100)..=100).all(|percent| Percent(percent).includes(hash));
            assert!(later && first > Some(0), "{hash}: {first:?}");
        }
        assert!(Percent::ALL.includes(u64::MAX) && !Percent::NONE.includes(0));
    }

    #[test]
    fn so_many_hundredths_of_evenly_spread_hashes_are_included() {
        for percent in [1, 10, 50, 99] {
            let hashes = (0..100_u64).map(|step| u64::MAX / 100 * step + 1_000);
            let included = hashes.filter(|hash| Percent(percent).includes(*hash)).count();
            assert_eq!(included, usize::from(percent));
        }
    }

    #[test]
    fn only_whole_hundredths_up_to_all_are_read() {
        for (text, percent) in [("0", 0), ("7%", 7), ("100%", 100)] {
            assert_eq!(text.parse(), Ok(Percent(percent)));
        }
        for text in ["", "%", "101", "-1", "+1", "1.5", "1 %", "256", "1%%"] {
            assert_eq!(text.parse::<Percent>(), Err(PercentError), "{text:?}");
        }
    }

    #[test]
    fn a_dial_counts_its_turns() {
        let dial = Dial::new(Percent(5));
        dial.set(Percent(5));
        assert_eq!(dial.read(), (Percent(5), 0));
        dial.clone().set(Percent::ALL);
        dial.set(Percent::NONE);
        assert_eq!((dial.read(), dial.get()), ((Percent::NONE, 2), Percent::NONE));
    }
}
