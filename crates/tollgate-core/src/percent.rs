//! A percentage of subjects.

use core::fmt;
use core::str::FromStr;

/// The number of parts in one percent. A [`Percent`] is stored as a number of these parts.
const PARTS: u16 = 100;

/// A percentage from 0 to 100, in steps of a hundredth of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u16);

impl Percent {
    /// Zero percent.
    pub const NONE: Self = Self(0);
    /// One hundred percent.
    pub const ALL: Self = Self(100 * PARTS);

    /// Returns a percentage of `hundredths` percent: `new(30)` is 30 %. Returns `None` if
    /// `hundredths` is above 100.
    #[must_use]
    pub const fn new(hundredths: u8) -> Option<Self> {
        Self::of_ten_thousand(hundredths as u16 * PARTS)
    }

    /// Returns a percentage of `parts` hundredths of a percent, or `None` if `parts` is above
    /// 10,000.
    #[must_use]
    pub const fn of_ten_thousand(parts: u16) -> Option<Self> {
        if parts > Self::ALL.0 { None } else { Some(Self(parts)) }
    }

    /// Returns the percentage in hundredths of a percent.
    #[must_use]
    pub const fn parts(self) -> u16 {
        self.0
    }

    /// Returns the number of percent, or `None` if it is not an integer.
    #[must_use]
    pub const fn whole(self) -> Option<u8> {
        // The quotient is at most 100, so the cast is exact.
        if self.0.is_multiple_of(PARTS) { Some((self.0 / PARTS) as u8) } else { None }
    }

    /// Returns whether the percentage includes the subject with the hash `hash`. The hashes of all
    /// subjects must be spread evenly over 64 bits. A percentage includes every subject that a
    /// smaller percentage includes.
    #[must_use]
    pub const fn includes(self, hash: u64) -> bool {
        // The hash is scaled to 0 ..= 9,999 and compared with the percentage in hundredths of a
        // percent.
        ((hash as u128 * Self::ALL.0 as u128) >> 64) < self.0 as u128
    }
}

/// Formats as in policy files: `30%`, `0.1%`.
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / PARTS, self.0 % PARTS);
        match (rest, rest % 10) {
            (0, _) => write!(f, "{whole}%"),
            (_, 0) => write!(f, "{whole}.{}%", rest / 10),
            _ => write!(f, "{whole}.{rest:02}%"),
        }
    }
}

/// Parses a number with at most two decimal places, with or without a percent sign.
impl FromStr for Percent {
    type Err = PercentError;

    fn from_str(text: &str) -> Result<Self, PercentError> {
        let number = text.strip_suffix('%').unwrap_or(text);
        let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str, most| {
            let plain = (1..=most).contains(&text.len());
            let plain = plain && text.bytes().all(|byte| byte.is_ascii_digit());
            if plain { text.parse::<u16>().ok() } else { None }
        };
        let scale = if rest.len() == 1 { 10 } else { 1 };
        let parts = digits(whole, 3).zip(digits(rest, 2));
        let parts = parts.map(|(whole, rest)| u32::from(whole) * 100 + u32::from(rest * scale));
        let parts = parts.and_then(|parts| u16::try_from(parts).ok());
        parts.and_then(Self::of_ten_thousand).ok_or(PercentError)
    }
}

/// The error for a text that is not a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentError;

impl fmt::Display for PercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a percentage is a number from 0 to 100 with at most two places after the point",
        )
    }
}

impl core::error::Error for PercentError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn who_is_among_few_is_among_more() {
        for hash in (0..1_000).map(|step: u64| step.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let first = (0..=10_000).find(|parts| Percent(*parts).includes(hash));
            let later =
                (first.unwrap_or(10_000)..=10_000).all(|parts| Percent(parts).includes(hash));
            assert!(later && first > Some(0), "{hash}: {first:?}");
        }
        assert!(Percent::ALL.includes(u64::MAX) && !Percent::NONE.includes(0));
    }

    #[test]
    fn so_many_of_evenly_spread_hashes_are_included() {
        for parts in [1, 10, 50, 99, 1_000, 9_999] {
            let hashes = (0..10_000_u64).map(|step| u64::MAX / 10_000 * step + 10_000);
            let included = hashes.filter(|hash| Percent(parts).includes(*hash)).count();
            assert_eq!(included, usize::from(parts));
        }
    }

    #[test]
    fn a_whole_percentage_includes_whom_hundredths_would() {
        for hash in (0..10_000).map(|step: u64| step.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let hundredth = (u128::from(hash) * 100) >> 64;
            let among = |whole: u8| Percent::new(whole).unwrap().includes(hash);
            assert!(
                (0..=100).all(|whole| among(whole) == (hundredth < u128::from(whole))),
                "{hash}"
            );
        }
    }

    #[test]
    fn two_places_after_the_point_are_read_and_shown() {
        for (text, parts) in [
            ("0%", 0),
            ("7%", 700),
            ("0.1%", 10),
            ("0.01%", 1),
            ("12.34%", 1_234),
            ("100%", 10_000),
        ] {
            assert_eq!(text.parse(), Ok(Percent(parts)));
            assert_eq!(Percent(parts).to_string(), text);
        }
        for (text, parts) in [("0", 0), ("0.10", 10), ("30.0", 3_000), ("100.00%", 10_000)] {
            assert_eq!(text.parse(), Ok(Percent(parts)), "{text}");
        }
        for text in [
            "", "%", "101", "-1", "+1", "1 %", "256", "1%%", ".5", "1.", "1.234", "1.-1", "100.01",
            "0.1.1", "1e1", "9999", "65536",
        ] {
            assert_eq!(text.parse::<Percent>(), Err(PercentError), "{text:?}");
        }
        assert_eq!([Percent(10).whole(), Percent(3_000).whole()], [None, Some(30)]);
    }
}
