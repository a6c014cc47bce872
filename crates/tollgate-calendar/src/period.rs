//! The periods of a calendar.

use jiff::ToSpan;
use jiff::civil::Date;
use tollgate_core::Millis;

use crate::error::CalendarError;

/// The days of a week in the usual order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weekday {
    /// The first day of the week of ISO 8601.
    #[default]
    Monday,
    /// The day after Monday.
    Tuesday,
    /// The day after Tuesday.
    Wednesday,
    /// The day after Wednesday.
    Thursday,
    /// The day after Thursday.
    Friday,
    /// The day after Friday.
    Saturday,
    /// The day after Saturday.
    Sunday,
}

/// A period of a calendar. Every period begins at the start of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// A day of usually 24 hours, or of 23 or 25 hours when the clocks change.
    Day,
    /// A week.
    Week {
        /// The day on which the week begins.
        first: Weekday,
    },
    /// A month.
    Month {
        /// The day on which the month begins, 1 to 31. In a calendar month without this day, the
        /// period begins on the last day.
        first_day: u8,
    },
    /// A year, from 1 January.
    Year,
}

const DAY: u64 = 86_400_000;
/// The most milliseconds by which changes of the clocks can make a period longer than its days. The
/// largest change within a day since 1970 is seven hours, in Antarctica in 1994, and this bound is
/// eight hours. With this bound, the shortest day (24 hours minus seven) is still longer than half
/// of the longest day (24 hours plus eight).
const LONGEST_CHANGE: u64 = DAY / 3;

impl Period {
    /// Checks that the values of the period are valid. Only the first day of a month can be
    /// invalid.
    pub(crate) const fn check(self) -> Result<(), CalendarError> {
        match self {
            Self::Month { first_day } if first_day == 0 || first_day > 31 => {
                Err(CalendarError::NoSuchDay(first_day))
            }
            _ => Ok(()),
        }
    }

    /// Returns an upper bound of the windows' lengths. If a period is longer, the calendar divides
    /// the period into two windows.
    pub(crate) const fn longest(self) -> Millis {
        let days = match self {
            Self::Day => 1,
            Self::Week { .. } => 7,
            Self::Month { .. } => 31,
            Self::Year => 366,
        };
        Millis::new(days * DAY + LONGEST_CHANGE)
    }

    /// Returns the usual length of the period. The usual length of a month is 30 days.
    pub(crate) const fn nominal(self) -> Millis {
        Millis::new(match self {
            Self::Day => DAY,
            Self::Week { .. } => 7 * DAY,
            Self::Month { .. } => 30 * DAY,
            Self::Year => 365 * DAY,
        })
    }

    /// Returns a description of the period in the time zone `zone`, such as `month in
    /// Europe/Berlin`.
    pub(crate) fn name_in(self, zone: &str) -> String {
        match self {
            Self::Day => format!("day in {zone}"),
            Self::Week { first } => format!("week from {first:?} in {zone}"),
            Self::Month { first_day: 1 } => format!("month in {zone}"),
            Self::Month { first_day } => format!("month from day {first_day} in {zone}"),
            Self::Year => format!("year in {zone}"),
        }
    }

    /// Returns the first day of the period that contains `date`.
    pub(crate) fn first_date(self, date: Date) -> Date {
        match self {
            Self::Day => date,
            Self::Week { first } => {
                let days = date.weekday().to_monday_zero_offset() - first as i8;
                date.saturating_sub(i64::from(days.rem_euclid(7)).days())
            }
            Self::Month { first_day } => {
                let month = date.first_of_month();
                let this = day_of_month(month, first_day);
                if this <= date {
                    return this;
                }
                day_of_month(month.saturating_sub(1.month()), first_day)
            }
            Self::Year => date.first_of_year(),
        }
    }

    /// Returns the first day of the period before the period that begins on `first`.
    pub(crate) fn before(self, first: Date) -> Date {
        self.first_date(first.saturating_sub(1.day()))
    }

    /// Returns the first day of the period after the period that begins on `first`.
    pub(crate) fn after(self, first: Date) -> Date {
        match self {
            Self::Day => first.saturating_add(1.day()),
            Self::Week { .. } => first.saturating_add(7.days()),
            Self::Month { first_day } => {
                day_of_month(first.first_of_month().saturating_add(1.month()), first_day)
            }
            Self::Year => first.saturating_add(1.year()),
        }
    }
}

/// Returns the day `day` of the month that begins on `first`. If the month is shorter, returns its
/// last day.
fn day_of_month(first: Date, day: u8) -> Date {
    let last = first.days_in_month();
    let day = i8::try_from(day).unwrap_or(last).min(last);
    first.saturating_add(i64::from(day - 1).days())
}
