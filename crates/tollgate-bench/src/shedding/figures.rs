//! The results of the benchmark as numbers.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use tollgate::shed::Priority;

use super::load::{End, Sent};

/// The results of the requests of one priority in a period of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The number of requests.
    pub sent: usize,
    /// The number of refused requests.
    pub refused: usize,
    /// The latencies of the requests that were served within
    /// [`CLIENT_TIMEOUT`](super::load::CLIENT_TIMEOUT), in ascending order.
    pub served: Vec<Duration>,
}

impl Figures {
    /// Returns the results of the requests that have `priority` and were sent in the seconds
    /// `seconds` of the run.
    #[must_use]
    pub fn of(sent: &[Sent], priority: Priority, seconds: &Range<u64>) -> Self {
        let mut figures = Self::default();
        let is_of = |one: &&Sent| one.priority == priority && seconds.contains(&one.second);
        for one in sent.iter().filter(is_of) {
            figures.sent += 1;
            match one.end {
                End::Served(took) => figures.served.push(took),
                End::Refused => figures.refused += 1,
                End::Late => {}
            }
        }
        figures.served.sort_unstable();
        figures
    }

    /// Returns the percentage of the requests that were served in time.
    #[must_use]
    pub fn percent_in_time(&self) -> usize {
        self.served.len() * 100 / self.sent.max(1)
    }

    /// Returns a percentile of the latencies of the requests that were served in time, such as 99
    /// for p99.
    #[must_use]
    pub fn percentile(&self, hundredths: usize) -> Option<Duration> {
        let rank = (self.served.len() * hundredths).div_ceil(100);
        self.served.get(rank.saturating_sub(1)).copied()
    }
}

/// A table of several runs. Each run is reported for the same seconds.
#[derive(Debug)]
pub struct Report<'r> {
    /// The names of the runs, with their requests.
    pub runs: &'r [(&'r str, Vec<Sent>)],
    /// The seconds that are reported.
    pub seconds: Range<u64>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(["", "priority", "sent", "refused", "in time", "", "median", "99 %"]);
        for (name, sent) in self.runs {
            for priority in Priority::ALL.into_iter().rev() {
                let figures = Figures::of(sent, priority, &self.seconds);
                let took = |hundredths| {
                    let took = figures.percentile(hundredths);
                    took.map_or_else(|| "–".to_owned(), |took| format!("{} ms", took.as_millis()))
                };
                table.add_row([
                    (*name).to_owned(),
                    priority.name().to_owned(),
                    figures.sent.to_string(),
                    figures.refused.to_string(),
                    figures.served.len().to_string(),
                    format!("{} %", figures.percent_in_time()),
                    took(50),
                    took(99),
                ]);
            }
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_time_is_distinguished_from_what_was_refused_and_what_was_late() {
        let end = |second, end| Sent { priority: Priority::Read, second, end };
        let served = |millis| End::Served(Duration::from_millis(millis));
        let mut sent = vec![end(0, served(1)), end(5, End::Late), end(6, End::Refused)];
        sent.extend((1..=100).rev().map(|millis| end(5, served(millis))));
        sent.push(Sent { priority: Priority::Test, second: 5, end: served(9) });
        let figures = Figures::of(&sent, Priority::Read, &(5..7));
        assert_eq!((figures.sent, figures.refused, figures.served.len()), (102, 1, 100));
        assert_eq!(figures.percent_in_time(), 98);
        assert_eq!(figures.percentile(50), Some(Duration::from_millis(50)));
        assert_eq!(figures.percentile(99), Some(Duration::from_millis(99)));
        assert_eq!(Figures::default().percentile(99), None);
    }
}
