//! The share of subjects or requests that may be refused.

use std::str::FromStr;

/// A share in thousandths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RefusedShare(u32);

/// The number of parts in one percent. `DIGITS` is the number of digits after the decimal point.
const PARTS: u32 = 1_000;
const DIGITS: usize = 3;

impl RefusedShare {
    /// The share of one hundred percent.
    pub(crate) const ALL: Self = Self(100 * PARTS);

    /// Returns whether `part` of `whole` is at most this share.
    pub(crate) fn allows(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(Self::ALL.0) <= u128::from(whole) * u128::from(self.0)
    }
}

impl FromStr for RefusedShare {
    type Err = String;

    /// Reads `1%`, `0.5%` or `0.125%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a percentage such as 1% or 0.5%, found {text:?}");
        let number = text.trim().strip_suffix('%').ok_or_else(wrong)?.trim_end();
        let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(rest) || rest.len() > DIGITS {
            return Err(wrong());
        }
        let thousandths: u32 = format!("{rest:0<DIGITS$}").parse().map_err(|_| wrong())?;
        let whole: u32 = whole.parse().map_err(|_| wrong())?;
        let share = whole.checked_mul(PARTS).and_then(|parts| parts.checked_add(thousandths));
        share.map(Self).filter(|share| *share <= Self::ALL).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_to_a_thousandth_of_a_percent() {
        for (text, parts) in
            [("1%", 1_000), ("0%", 0), ("0.5 %", 500), ("0.125%", 125), ("100%", 100_000)]
        {
            assert_eq!(text.parse(), Ok(RefusedShare(parts)), "{text}");
        }
        for text in ["1", "%", ".5%", "1.2345%", "-1%", "100.001%", "1,5%", "99999999999%", "+1%"] {
            assert!(text.parse::<RefusedShare>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_allows_exactly_its_part() {
        let percent: RefusedShare = "1%".parse().unwrap();
        assert!(percent.allows(10, 1_000) && !percent.allows(11, 1_000));
        assert!(percent.allows(0, 0) && percent.allows(0, 50) && !percent.allows(1, 50));
        assert!(RefusedShare::ALL.allows(u64::MAX, u64::MAX));
    }
}
