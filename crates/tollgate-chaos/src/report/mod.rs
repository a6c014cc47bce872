//! Reports of a run: one line when a scenario ends, and a file with all outcomes.

mod html;
mod line;
mod markdown;

pub(crate) use html::page;
pub(crate) use line::line;
pub(crate) use markdown::markdown;

use super::run::Outcome;

/// Returns `n of m scenarios held`.
pub(crate) fn summary(outcomes: &[Outcome]) -> String {
    let held = outcomes.iter().filter(|outcome| outcome.is_held()).count();
    format!("{held} of {} scenarios held", outcomes.len())
}
