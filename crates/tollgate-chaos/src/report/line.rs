//! The result of a scenario as one line for a terminal.

use std::fmt::Write;

use crate::run::Outcome;

/// Returns a line with the scenario, its figures with their bounds, and the result. Failures follow
/// in further lines.
pub(crate) fn line(outcome: &Outcome) -> String {
    let (name, took) = (outcome.scenario.name(), outcome.took.as_secs_f32());
    let finding = match &outcome.found {
        Ok(finding) => finding,
        Err(error) => return format!("{name}: could not be carried out: {error}"),
    };
    let mut line = format!("{name}: {} ({took:.1} s): ", finding.did);
    for figure in &finding.figures {
        let _ = write!(line, "{figure}; ");
    }
    let _ = write!(line, "{}", finding.result());
    if !finding.checked.is_sound() {
        let _ = write!(line, "\n  {}", finding.checked.to_string().replace('\n', "\n  "));
    }
    line
}
