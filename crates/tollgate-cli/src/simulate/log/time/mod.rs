//! The times of logs as exact milliseconds since the Unix epoch.

mod calendar;
mod clf;
mod decimal;
mod rfc3339;

pub(super) use clf::ClfClock;
pub(super) use decimal::scaled;
pub(super) use rfc3339::parse as rfc3339;

/// The latest time of a decision: the largest integer that a double represents exactly.
pub(super) const TIME_MAX: u64 = (1 << 53) - 1;

/// Converts a time since the epoch to milliseconds. The size of the number determines its unit:
/// seconds below 10^11 (the year 5138), milliseconds below 10^14, microseconds below 10^17, and
/// nanoseconds from there on. Fractions of a millisecond are cut off. Returns `None` if the text is
/// not a number, or if the result exceeds 64 bits.
pub(super) fn epoch(number: &[u8]) -> Option<u64> {
    let whole = scaled(number, 0)?;
    let power = match whole {
        0..100_000_000_000 => 3,
        100_000_000_000..100_000_000_000_000 => 0,
        100_000_000_000_000..100_000_000_000_000_000 => -3,
        _ => -6,
    };
    scaled(number, power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_number_reports_its_unit() {
        assert_eq!(epoch(b"1431857103"), Some(1_431_857_103_000));
        assert_eq!(epoch(b"1431857103.25"), Some(1_431_857_103_250));
        assert_eq!(epoch(b"1646861401.5241024"), Some(1_646_861_401_524));
        assert_eq!(epoch(b"1431857103250"), Some(1_431_857_103_250));
        assert_eq!(epoch(b"1431857103250999"), Some(1_431_857_103_250));
        assert_eq!(epoch(b"1431857103250999999"), Some(1_431_857_103_250));
        assert_eq!(epoch(b"1.431857103e9"), Some(1_431_857_103_000));
        assert_eq!(epoch(b"-1"), None);
        assert_eq!(epoch(b""), None);
    }
}
