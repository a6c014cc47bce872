//! Counts by hour of the day. A short log has a row for each day, and a long log has a row for each
//! weekday.

use super::super::utc::{DAY, HOUR, Utc, WEEKDAYS, weekday};
use super::{Counts, RequestOutcome};

/// The number of days of a log after which its days are combined by weekday.
const DAYS_MAX: usize = 14;

/// The counts of the hours of one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) hours: [Counts; 24],
}

/// Counts by day and hour in UTC.
#[derive(Clone, Debug)]
pub(crate) enum Hours {
    /// One row for each day. The first row is for the day `first`, in days since the epoch.
    ByDate { first: u64, days: Vec<Row> },
    /// One row for each weekday, from Monday.
    ByWeekday(Box<[Row; 7]>),
}

impl Default for Hours {
    fn default() -> Self {
        Self::ByDate { first: 0, days: Vec::new() }
    }
}

impl Hours {
    /// Counts a request. Requests must be counted in the order of their times.
    pub(super) fn add(&mut self, now: u64, outcome: RequestOutcome) {
        let (day, hour) = (now / DAY, (now / HOUR % 24) as usize);
        if let Self::ByDate { first, days } = self {
            if days.is_empty() {
                *first = day;
            }
            match usize::try_from(day - *first) {
                Ok(index) if index < DAYS_MAX => {
                    days.resize(days.len().max(index + 1), Row::default());
                    days[index].hours[hour].add(outcome);
                    return;
                }
                _ => *self = Self::ByWeekday(by_weekday(*first, days)),
            }
        }
        if let Self::ByWeekday(week) = self {
            week[weekday(day)].hours[hour].add(outcome);
        }
    }

    /// Returns each day's name and hours.
    pub(crate) fn rows(&self) -> Vec<(String, Row)> {
        match self {
            Self::ByDate { first, days } => {
                let name = |day: u64| {
                    format!("{} {}", WEEKDAYS[weekday(day)], Utc::new(day * DAY).short_date())
                };
                (*first..).zip(days).map(|(day, row)| (name(day), *row)).collect()
            }
            Self::ByWeekday(week) => WEEKDAYS
                .iter()
                .zip(week.iter())
                .map(|(name, row)| ((*name).to_owned(), *row))
                .collect(),
        }
    }
}

fn by_weekday(first: u64, days: &[Row]) -> Box<[Row; 7]> {
    let mut week = Box::new([Row::default(); 7]);
    for (day, row) in (first..).zip(days) {
        for (sum, counts) in week[weekday(day)].hours.iter_mut().zip(row.hours) {
            *sum = sum.plus(counts);
        }
    }
    week
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUNDAY: u64 = 1_431_820_800_000;

    #[test]
    fn a_short_log_is_reported_day_by_day() {
        let mut hours = Hours::default();
        hours.add(SUNDAY + 10 * HOUR, RequestOutcome::Refused);
        hours.add(SUNDAY + DAY + 23 * HOUR, RequestOutcome::Admitted);
        let rows = hours.rows();
        assert_eq!(
            rows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["Sun 17 May", "Mon 18 May"]
        );
        assert_eq!(rows[0].1.hours[10].refused, 1);
        assert_eq!(rows[1].1.hours[23].admitted, 1);
    }

    #[test]
    fn a_long_log_is_reported_by_the_days_of_the_week() {
        let mut hours = Hours::default();
        for day in 0..28 {
            hours.add(SUNDAY + day * DAY, RequestOutcome::Admitted);
        }
        let rows = hours.rows();
        assert_eq!(rows.len(), 7);
        assert!(rows.iter().all(|(_, row)| row.hours[0].requests == 4));
        hours.add((1 << 53) - 1, RequestOutcome::Admitted);
    }
}
