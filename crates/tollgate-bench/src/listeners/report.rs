//! A table of all listeners, with the two contenders of a case in consecutive rows.

use std::fmt;

use comfy_table::Table;

use super::case::{Case, Measured, Round};
use crate::spread::Spread;
use crate::table;

/// The table of a run.
#[derive(Debug)]
pub struct Report(Table);

/// The number of instructions of a decision of Tollgate and of the peer, if they were counted.
pub type Counted = Option<[u64; 2]>;

const HEADER: [&str; 7] =
    ["door", "who", "CPU s/M", "of the peer's", "aim", "instructions", "decisions/s"];

impl Report {
    /// Creates a table without rows.
    #[must_use]
    pub fn new() -> Self {
        Self(table::of_figures(HEADER, 2))
    }

    /// Adds the results of both contenders of `case`.
    pub fn add(&mut self, case: &Case, measured: &Measured, counted: Counted) {
        // Each ratio is taken within one round, in which one contender runs right after the other,
        // so disturbances of both cancel out.
        let beside = |(ours, peer): (&Round, &Round)| seconds(ours) / seconds(peer);
        let ratio = Spread::of(measured.ours.iter().zip(&measured.peer).map(beside));
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

/// Returns the processor seconds of the server for a million decisions, computed from `round`.
fn seconds(round: &Round) -> f64 {
    round.server.as_secs_f64() * 1e6 / round.decisions as f64
}

fn per_second(round: &Round) -> f64 {
    round.decisions as f64 / round.wall.as_secs_f64()
}
