//! Times and durations in integer milliseconds. The code that requests a decision also provides the
//! time of the decision.

use core::fmt;

/// The largest integer of all decisions: 2^53 − 1, up to which Rust, Lua and JSON represent every
/// integer exactly. No quantity of a decision exceeds this number, so each store computes the same
/// integers.
pub const MAX_EXACT: u64 = (1 << 53) - 1;

/// The longest window, precision or permit time: ten years of 365 days plus three leap days.
pub const MAX_WINDOW: Millis = Millis::new(10 * 365 * 86_400_000 + 3 * 86_400_000);

/// The default of the allowed clock skew. State that is further in the future than the allowed
/// clock skew is treated as missing.
pub const DEFAULT_SKEW_MAX: Millis = Millis::new(5_000);

/// A point in time: milliseconds since the Unix epoch, 0 to 2^53 − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// A duration in milliseconds, 0 to 2^53 − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// Returns the time `millis` milliseconds after the Unix epoch, but at most 2^53 − 1
    /// milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(if millis > MAX_EXACT { MAX_EXACT } else { millis })
    }

    /// Returns the milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the whole seconds since the Unix epoch, rounded up. A client that waits until that
    /// second does not retry too early.
    #[must_use]
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// Returns the time that is `by` later, but at most 2^53 − 1 milliseconds after the Unix epoch.
    #[must_use]
    pub const fn after(self, by: Millis) -> Self {
        Self::from_millis(self.0.saturating_add(by.0))
    }

    /// Returns the duration since `earlier`, or zero if this time is not after `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl Millis {
    /// The zero duration.
    pub const ZERO: Self = Self(0);

    /// Returns a duration of `millis` milliseconds, but at most 2^53 − 1 milliseconds.
    #[must_use]
    pub const fn new(millis: u64) -> Self {
        Self(if millis > MAX_EXACT { MAX_EXACT } else { millis })
    }

    /// Returns a duration of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self::new(secs.saturating_mul(1000))
    }

    /// Returns the duration in milliseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the duration in whole seconds, rounded up.
    #[must_use]
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1000)
    }
}

impl fmt::Display for Millis {
    /// Formats the duration as in policy files, with the largest unit that gives an integer (`1h`,
    /// `90s`, `250ms`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
        for (unit, name) in UNITS {
            if self.0 > 0 && self.0.is_multiple_of(unit) {
                return write!(f, "{}{name}", self.0 / unit);
            }
        }
        write!(f, "{}ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn lengths_are_written_as_a_policy_writes_them() {
        for (millis, text) in [
            (0, "0ms"),
            (250, "250ms"),
            (1_000, "1s"),
            (90_000, "90s"),
            (3_600_000, "1h"),
            (86_400_000, "1d"),
        ] {
            assert_eq!(Millis::new(millis).to_string(), text);
        }
    }

    #[test]
    fn moments_never_leave_the_exact_range() {
        let last = Timestamp::from_millis(u64::MAX);
        assert_eq!(last.as_millis(), MAX_EXACT);
        assert_eq!(last.after(Millis::new(u64::MAX)), last);
        assert_eq!(Timestamp::EPOCH.since(last), Millis::ZERO);
        assert_eq!(Timestamp::from_millis(1_001).as_secs_ceil(), 2);
    }
}
