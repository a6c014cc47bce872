//! The report: a table of all listeners. The rows of the two contenders of a case follow each
//! other.

use std::fmt;
use std::time::Duration;

use comfy_table::Table;

use super::case::{Case, Measured, Round};
use crate::spread::Spread;
use crate::table;

/// The table of the measurements of a run.
#[derive(Debug)]
pub struct Report(Table);

/// The numbers of instructions for one decision of Tollgate and of the peer. `None` if instructions
/// were not counted.
pub type Counted = Option<[u64; 2]>;

const HEADER: [&str; 8] = [
    "listener",
    "server",
    "CPU s/M",
    "in the kernel",
    "of the peer's",
    "aim",
    "instructions",
    "decisions/s",
];

impl Report {
    /// Creates a table without rows.
    #[must_use]
    pub fn new() -> Self {
        Self(table::of_figures(HEADER, 2))
    }

    /// Adds a row for each contender of `case`.
    pub fn add(&mut self, case: &Case, measured: &Measured, counted: Counted) {
        // Each ratio compares two measurements of one round. They are made directly after each
        // other, so disturbances affect both and cancel out.
        let quotient = |(ours, peer): (&Round, &Round)| seconds(ours) / seconds(peer);
        let ratio = Spread::of(measured.ours.iter().zip(&measured.peer).map(quotient));
        let [ours, peer] = match counted {
            Some(counted) => counted.map(|count| count.to_string()),
            None => [String::new(), String::new()],
        };
        let aim = case.aim.map(|aim| format!("{aim:.2}")).unwrap_or_default();
        let ratio = format!("{ratio:.2}");
        self.add_row([case.name, &case.peer.to_string(), "1.00", "", &peer], &measured.peer);
        self.add_row(["", &case.ours.to_string(), &ratio, &aim, &ours], &measured.ours);
    }

    fn add_row(&mut self, [listener, who, ratio, aim, instructions]: [&str; 5], rounds: &[Round]) {
        let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        let (cost, speed) = (spread(seconds), spread(per_second));
        self.0.add_row([
            listener,
            who,
            &format!("{cost:.1}"),
            &format!("{:.1}", kernel_seconds(rounds)),
            ratio,
            aim,
            instructions,
            &format!("{:.0}", speed.median),
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

/// Returns the processor time of the server for a million decisions, in seconds.
fn seconds(round: &Round) -> f64 {
    round.server.as_secs_f64() * 1e6 / round.decisions as f64
}

/// Returns the processor seconds in the kernel for a million decisions, over all `rounds`. The time
/// of a single round is too coarse.
fn kernel_seconds(rounds: &[Round]) -> f64 {
    let kernel: Duration = rounds.iter().map(|round| round.kernel).sum();
    let decisions: usize = rounds.iter().map(|round| round.decisions).sum();
    kernel.as_secs_f64() * 1e6 / decisions as f64
}

fn per_second(round: &Round) -> f64 {
    round.decisions as f64 / round.wall.as_secs_f64()
}
