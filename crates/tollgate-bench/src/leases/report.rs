//! One table: the exact limit, and the leased one below it.

use std::fmt;
use std::time::Duration;

use comfy_table::Table;

use super::case::{Case, Round};
use crate::spread::Spread;
use crate::table;

const HEADER: [&str; 8] = [
    "one hot subject",
    "mode",
    "decisions/s",
    "of the exact one's",
    "nodes CPU s/M",
    "Redis CPU s/M",
    "calls for 1,000",
    "admitted",
];

/// The table of a run.
#[derive(Debug)]
pub struct Report(Table);

impl Report {
    /// A table without rows.
    #[must_use]
    pub fn new() -> Self {
        Self(table::of_figures(HEADER, 2))
    }

    /// Adds what `case` did, beside the `exact` one's rounds of the same time.
    pub fn add(&mut self, case: &Case, rounds: &[Round], exact: &[Round]) {
        let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        let ratios = rounds.iter().zip(exact).map(|(one, exact)| speed(one) / speed(exact));
        let admitted: Vec<_> = rounds.iter().map(|round| round.admitted).collect();
        let (least, most) = (admitted.iter().min(), admitted.iter().max());
        let admitted = match (least, most) {
            (Some(least), Some(most)) if least != most => format!("{least}–{most}"),
            (Some(all), _) => all.to_string(),
            (None, _) => String::new(),
        };
        self.0.add_row([
            case.name,
            case.mode,
            &format!("{:.0}", spread(speed)),
            &format!("{:.1}", Spread::of(ratios)),
            &format!("{:.1}", spread(|round| per_million(round, round.spent.nodes))),
            &format!("{:.2}", spread(|round| per_million(round, round.spent.redis))),
            &format!("{:.1}", spread(|it| it.spent.calls as f64 * 1e3 / it.decided as f64)),
            &admitted,
        ]);
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn speed(round: &Round) -> f64 {
    round.decided as f64 / round.seconds
}

fn per_million(round: &Round, time: Duration) -> f64 {
    time.as_secs_f64() * 1e6 / round.decided as f64
}
