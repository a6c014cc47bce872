//! Times in UTC in a readable form.
//!
//! The calendar is computed by hand, because every time of the core has a text. These times have up
//! to 53 bits of milliseconds and end in the year 287396. The times of the crate `jiff`, which
//! `tollgate-calendar` uses, end in the year 9999.

use std::fmt;

/// The date and time of day in UTC. Displayed as RFC 3339, with the milliseconds if their number is
/// not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Utc {
    pub(crate) year: u64,
    /// The month, from 1 to 12.
    pub(crate) month: u64,
    /// The day of the month, from 1 to 31.
    pub(crate) day: u64,
    pub(crate) hour: u64,
    pub(crate) minute: u64,
    pub(crate) second: u64,
    pub(crate) milli: u64,
}

/// Milliseconds in an hour.
pub(crate) const HOUR: u64 = 3_600_000;
/// Milliseconds in a day.
pub(crate) const DAY: u64 = 24 * HOUR;

/// Days of the week, from Monday.
pub(crate) const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Utc {
    /// Returns the time `millis` after the Unix epoch.
    pub(crate) fn new(millis: u64) -> Self {
        let (year, month, day) = date(millis / DAY);
        Self {
            year,
            month,
            day,
            hour: millis / HOUR % 24,
            minute: millis / 60_000 % 60,
            second: millis / 1000 % 60,
            milli: millis % 1000,
        }
    }

    /// Returns the time in the common log format, such as `17/May/2015:10:05:03 +0000`.
    pub(crate) fn clf(self) -> String {
        let Self { year, day, hour, minute, second, .. } = self;
        let month = self.month_name();
        format!("{day:02}/{month}/{year}:{hour:02}:{minute:02}:{second:02} +0000")
    }

    /// Returns the date, such as `17 May 2015`.
    pub(crate) fn long_date(self) -> String {
        format!("{} {}", self.short_date(), self.year)
    }

    /// Returns the date without the year, such as `17 May`.
    pub(crate) fn short_date(self) -> String {
        format!("{} {}", self.day, self.month_name())
    }

    /// Returns the time of day, such as `10:05`.
    pub(crate) fn clock(self) -> String {
        format!("{:02}:{:02}", self.hour, self.minute)
    }

    /// Returns the time of day with seconds, such as `10:05:03`.
    pub(crate) fn clock_with_seconds(self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
    }

    /// Returns the abbreviated name of the month, such as `May`.
    pub(crate) fn month_name(self) -> &'static str {
        usize::try_from(self.month - 1).ok().and_then(|month| MONTHS.get(month)).unwrap_or(&"")
    }
}

/// Returns the index in [`WEEKDAYS`] of a day since the epoch.
pub(crate) fn weekday(day: u64) -> usize {
    // The epoch was a Thursday. The remainder of a division by 7 fits into the type.
    ((day + 3) % 7) as usize
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, milli, .. } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{}", self.clock_with_seconds())?;
        if *milli > 0 {
            write!(f, ".{milli:03}")?;
        }
        f.write_str("Z")
    }
}

/// Writes milliseconds since the epoch as RFC 3339.
pub(crate) fn serialize<S: serde::Serializer>(
    millis: &u64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Utc::new(*millis))
}

/// Returns year, month and day of a day since the epoch.
fn date(days: u64) -> (u64, u64, u64) {
    // Eras of 400 years repeat. Years start in March, which makes the leap day the last day of its
    // year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_in_utc() {
        assert_eq!(Utc::new(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Utc::new(1_431_857_103_250).to_string(), "2015-05-17T10:05:03.250Z");
        assert_eq!(Utc::new(951_782_400_000).to_string(), "2000-02-29T00:00:00Z");
        assert_eq!(Utc::new((1 << 53) - 1).year, 287_396);
        assert_eq!(Utc::new(1_431_857_103_250).long_date(), "17 May 2015");
        assert_eq!(WEEKDAYS[weekday(1_431_857_103_250 / DAY)], "Sun");
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = date(0);
        for day in 1..400_000 {
            let (year, month, number) = date(day);
            let follows = (year, month, number) == (last.0, last.1, last.2 + 1)
                || (year, month, number) == (last.0, last.1 + 1, 1) && last.2 >= 28
                || (year, month, number) == (last.0 + 1, 1, 1) && (last.1, last.2) == (12, 31);
            assert!(follows, "{last:?} then {:?}", (year, month, number));
            last = (year, month, number);
        }
    }
}
