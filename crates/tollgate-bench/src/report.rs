//! The report of the memory benchmark: a table of all measurements, compared with the first
//! contender.

use comfy_table::Table;

use crate::rounds::DecisionTimes;
use crate::table;

/// The table of the measurements of a run.
#[derive(Debug)]
pub struct Report(Table);

impl Report {
    /// Creates a table without rows.
    #[must_use]
    pub fn new() -> Self {
        Self(table::of_figures(
            ["case", "who", "ns wall", "ns processor", "processor, of governor's"],
            2,
        ))
    }

    /// Adds the results of the contenders `names` in one case. The first contender is the baseline.
    pub fn add(&mut self, case: &str, names: &[&str], took: &[DecisionTimes]) {
        let first = took.first().copied().unwrap_or_default();
        for (name, took) in names.iter().zip(took) {
            self.0.add_row([
                case.to_owned(),
                (*name).to_owned(),
                format!("{:.1}", took.wall),
                format!("{:.1}", took.processor),
                format!("{:.2}", took.processor / first.processor),
            ]);
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
