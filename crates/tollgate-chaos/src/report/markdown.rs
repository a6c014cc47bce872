//! The report as Markdown.

use std::fmt::Write;

use super::summary;
use crate::run::Outcome;

/// Returns all outcomes, with a section for each.
pub(crate) fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = format!("# Tollgate under faults\n\n{}.\n", summary(outcomes));
    for outcome in outcomes {
        let _ = write!(text, "\n## {}\n\n", outcome.scenario.name());
        let finding = match &outcome.found {
            Ok(finding) => finding,
            Err(error) => {
                let _ = writeln!(text, "Could not be carried out: {error}");
                continue;
            }
        };
        let _ = writeln!(text, "{}: **{}**.\n", sentence(finding.did), finding.result());
        let _ = writeln!(text, "| figure | seen | bound |\n| --- | ---: | ---: |");
        for figure in &finding.figures {
            let _ = writeln!(text, "| {} | {} | {} |", figure.what, figure.seen, figure.bound);
        }
        let _ = writeln!(text, "\nThe history: {}", finding.checked);
    }
    text
}

/// Returns `words` with a capital first letter.
pub(super) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
