//! What came of a run: a line as each scenario ends, and a file with all of it.

mod html;
mod line;
mod markdown;

pub(crate) use html::page;
pub(crate) use line::line;
pub(crate) use markdown::markdown;

use super::run::Outcome;

/// `n of m scenarios held`.
pub(crate) fn summary(outcomes: &[Outcome]) -> String {
    let held = outcomes.iter().filter(|outcome| outcome.is_held()).count();
    format!("{held} of {} scenarios held", outcomes.len())
}
