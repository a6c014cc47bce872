//! The report: a table of all measurements. The rows of the contenders of a case follow each other.

use std::fmt;

use comfy_table::Table;

use super::cases::{Keys, Measured};
use super::closed_loop::Round;
use crate::spread::Spread;
use crate::table;

/// The style of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For a terminal. Each median has the minimum and the maximum of the rounds next to it.
    Terminal,
    /// For the documentation. The table contains medians. Only numbers for which there is a goal
    /// also have the minimum and the maximum.
    Markdown,
}

/// The table of the measurements of a run.
#[derive(Debug)]
pub struct Report {
    table: Table,
    style: Style,
}

const HEADER: [&str; 12] = [
    "keys, limits",
    "callers",
    "who",
    "admitted",
    "a call",
    "decisions/s",
    "Redis CPU s/M",
    "of two keys'",
    "our CPU s/M",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
];

impl Report {
    /// Creates a table without rows.
    #[must_use]
    pub fn new(style: Style) -> Self {
        let table = table::of_figures(HEADER, 1);
        Self { table, style }
    }

    /// Adds the results of the contenders `names` in one case. The first contender is the baseline.
    pub fn add(&mut self, names: &[&str], measured: &Measured) {
        let others = [&measured.two_keys, &measured.cell].into_iter().chain(&measured.tollgate);
        let rounds = others.filter(|rounds| !rounds.is_empty());
        for (name, rounds) in names.iter().zip(rounds) {
            self.add_row(name, measured, rounds);
        }
    }

    fn add_row(&mut self, name: &str, measured: &Measured, rounds: &[Round]) {
        let case = measured.case;
        let keys = match case.keys {
            Keys::Hot => "one hot key",
            Keys::Many => "many keys",
        };
        let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        // Each ratio compares two measurements of one round. They are made directly after each
        // other, so disturbances affect both and cancel out.
        let quotient = |(ours, theirs)| server_seconds(ours) / server_seconds(theirs);
        let ratio = Spread::of(rounds.iter().zip(&measured.two_keys).map(quotient));
        let admitted: usize = rounds.iter().map(|round| round.admitted).sum();
        let row = [
            format!("{keys}, {}", case.limits),
            case.callers.to_string(),
            name.to_owned(),
            admitted.to_string(),
            format!("{:.1}", spread(decisions_a_call).median),
            self.cell(spread(decisions_a_second), 0),
            self.cell(spread(server_seconds), 2),
            format!("{ratio:.2}"),
            self.cell(spread(client_seconds), 2),
            self.cell(spread(|round| micros(round, 500)), 0),
            self.cell(spread(|round| micros(round, 990)), 0),
            self.cell(spread(|round| micros(round, 999)), 0),
        ];
        self.table.add_row(row);
    }

    fn cell(&self, spread: Spread, digits: usize) -> String {
        match self.style {
            Style::Terminal => format!("{spread:.digits$}"),
            Style::Markdown => format!("{:.digits$}", spread.median),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

fn decisions_a_second(round: &Round) -> f64 {
    round.decisions() as f64 / round.wall.as_secs_f64()
}

fn decisions_a_call(round: &Round) -> f64 {
    round.decisions() as f64 / round.calls as f64
}

/// Returns the processor time of the server for a million decisions, in seconds.
fn server_seconds(round: &Round) -> f64 {
    round.server.as_secs_f64() * 1e6 / round.decisions() as f64
}

/// Returns the processor time of this process for a million decisions, in seconds.
fn client_seconds(round: &Round) -> f64 {
    round.client.as_secs_f64() * 1e6 / round.decisions() as f64
}

fn micros(round: &Round, per_mille: usize) -> f64 {
    round.percentile(per_mille).as_secs_f64() * 1e6
}
