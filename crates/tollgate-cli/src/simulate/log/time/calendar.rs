//! Dates of the Gregorian calendar as days since the Unix epoch.

/// Returns the days from 1970-01-01 to a date, or `None` if the date does not exist or is before
/// 1970.
pub(super) fn days(year: u32, month: u32, day: u32) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    if day > month_length(year, month) {
        return None;
    }
    // In this calculation, years start in March. The leap day is then the last day of its year, and
    // one formula gives the lengths of all months.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = years / 4 - years / 100 + years / 400;
    let since_year_0 = 365 * years + leap_days + (153 * months + 2) / 5 + day - 1;
    Some(u64::from(since_year_0 - MARCH_YEAR_0_TO_EPOCH))
}

/// The days from March 1st of year 0 to January 1st of 1970.
const MARCH_YEAR_0_TO_EPOCH: u32 = 719_468;

fn month_length(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Parses two ASCII digits. Returns `None` for any other text.
pub(super) fn two(text: &[u8]) -> Option<u32> {
    match *text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(u32::from(a - b'0') * 10 + u32::from(b - b'0')),
        _ => None,
    }
}

/// Parses four ASCII digits. Returns `None` for any other text.
pub(super) fn four(text: &[u8]) -> Option<u32> {
    Some(two(text.get(..2)?)? * 100 + two(text.get(2..)?)?)
}

/// Returns the seconds since midnight, or `None` if there is no such time of day. A leap second
/// counts as part of the next minute.
pub(super) fn second_of_day(hour: u32, minute: u32, second: u32) -> Option<u64> {
    (hour < 24 && minute < 60 && second <= 60)
        .then(|| u64::from(hour * 3600 + minute * 60 + second))
}

/// Returns the offset of a time zone in seconds east of Greenwich, from a sign, hours and minutes.
/// Returns `None` if they are not a valid offset.
pub(super) fn offset(sign: u8, hours: u32, minutes: u32) -> Option<i64> {
    let seconds = i64::try_from(second_of_day(hours, minutes, 0)?).ok()?;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// Returns the milliseconds since the epoch, computed from a day, the seconds in the day, and the
/// offset of the clock. Returns `None` if the time is before the epoch.
pub(super) fn millis(days: u64, second: u64, offset: i64) -> Option<u64> {
    (days * 86_400 + second).checked_add_signed(-offset).map(|seconds| seconds * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_for_eight_centuries_is_the_one_after_the_last() {
        let mut expected = 0;
        for year in 1970..2770 {
            for month in 1..=12 {
                for day in 1..=month_length(year, month) {
                    assert_eq!(days(year, month, day), Some(expected), "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
        assert_eq!(days(2000, 3, 1), Some(11_017));
    }

    #[test]
    fn there_is_no_such_day() {
        for (year, month, day) in [
            (1969, 12, 31),
            (2015, 2, 29),
            (2100, 2, 29),
            (2015, 13, 1),
            (2015, 4, 31),
            (2015, 0, 1),
            (2015, 1, 0),
        ] {
            assert_eq!(days(year, month, day), None, "{year}-{month}-{day}");
        }
    }
}
