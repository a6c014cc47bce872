//! Numbers in a readable form.

use std::fmt;

/// Formats a count with thousands separators: `10,000`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() * 4 / 3);
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// Formats the number of malformed lines.
pub(crate) struct Malformed(pub(crate) u64);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = if self.0 == 1 { "line" } else { "lines" };
        write!(f, "{} malformed {lines}", Count(self.0))
    }
}

/// Formats a difference with its sign: `+12`, `−3`, `±0`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference(i64);

impl Difference {
    /// Returns the difference from `before` to `now`.
    pub(super) fn new(before: u64, now: u64) -> Self {
        Self(now.cast_signed().saturating_sub(before.cast_signed()))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.0 {
            0 => '±',
            1.. => '+',
            _ => '−',
        };
        f.pad(&format!("{sign}{}", Count(self.0.unsigned_abs())))
    }
}

/// Formats a share in percent, with enough decimal places to distinguish it from 0 % and from 100
/// %: `4.5 %`, `0.15 %`, `< 0.01 %`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    /// Returns the share of `part` in `whole`.
    pub(crate) fn new(part: u64, whole: u64) -> Self {
        Self { part, whole }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The share is in hundredths of a percent, rounded down.
        let hundredths = u128::from(self.part) * 10_000 / u128::from(self.whole.max(1));
        let text = match hundredths {
            0 if self.part == 0 => "0 %".to_owned(),
            0 => "< 0.01 %".to_owned(),
            1..100 | 9_900..10_000 => format!("{}.{:02} %", hundredths / 100, hundredths % 100),
            100..9_900 => format!("{}.{} %", hundredths / 100, hundredths / 10 % 10),
            _ => format!("{} %", hundredths / 100),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(Count(0).to_string(), "0");
        assert_eq!(Count(999).to_string(), "999");
        assert_eq!(Count(1_234_567).to_string(), "1,234,567");
        assert_eq!(Difference::new(5, 1_005).to_string(), "+1,000");
        assert_eq!(Difference::new(5, 2).to_string(), "−3");
        assert_eq!(Difference::new(5, 5).to_string(), "±0");
    }

    #[test]
    fn shares_never_round_something_to_nothing_or_all() {
        for (part, whole, text) in [
            (0, 0, "0 %"),
            (0, 9, "0 %"),
            (1, 1_000_000, "< 0.01 %"),
            (15, 10_000, "0.15 %"),
            (445, 10_000, "4.4 %"),
            (9_985, 10_000, "99.85 %"),
            (999_999, 1_000_000, "99.99 %"),
            (7, 7, "100 %"),
        ] {
            assert_eq!(Share::new(part, whole).to_string(), text);
        }
    }
}
