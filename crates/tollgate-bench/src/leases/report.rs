//! The report: a table in which the row of each exact limit is followed by the row of the same
//! limit in leased mode.

use std::time::Duration;

use comfy_table::Table;

use super::case::{CASES, Case};
use super::round::Round;
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

/// Returns the table of the measured rounds. `measured` has the rounds of each case, in the order
/// of [`CASES`]. In that order, an exact limit precedes the leased limit with which it is compared.
#[must_use]
pub fn table(measured: &[Vec<Round>; CASES.len()]) -> Table {
    let mut table = table::of_figures(HEADER, 2);
    for (index, (case, rounds)) in CASES.iter().zip(measured).enumerate() {
        // The cases with an even index are exact limits. A leased limit is compared with the case
        // before it.
        table.add_row(row(case, rounds, &measured[index / 2 * 2]));
    }
    table
}

fn row(case: &Case, rounds: &[Round], exact: &[Round]) -> [String; HEADER.len()] {
    let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
    let ratios = rounds.iter().zip(exact).map(|(one, exact)| speed(one) / speed(exact));
    let admitted = rounds.iter().map(|round| round.admitted);
    let admitted = match (admitted.clone().min(), admitted.max()) {
        (Some(least), Some(most)) if least != most => format!("{least}–{most}"),
        (all, _) => all.map(|all| all.to_string()).unwrap_or_default(),
    };
    [
        case.name.to_owned(),
        case.mode.to_owned(),
        format!("{:.0}", spread(speed)),
        format!("{:.1}", Spread::of(ratios)),
        format!("{:.1}", spread(|round| per_million(round, round.usage.nodes))),
        format!("{:.2}", spread(|round| per_million(round, round.usage.redis))),
        format!("{:.1}", spread(|it| it.usage.calls as f64 * 1e3 / it.decided as f64)),
        admitted,
    ]
}

fn speed(round: &Round) -> f64 {
    round.decided as f64 / round.seconds
}

fn per_million(round: &Round, time: Duration) -> f64 {
    time.as_secs_f64() * 1e6 / round.decided as f64
}
