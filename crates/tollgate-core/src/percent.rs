//! A percentage of subjects.

use core::fmt;
use core::str::FromStr;

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

impl core::error::Error for PercentError {}

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
}
