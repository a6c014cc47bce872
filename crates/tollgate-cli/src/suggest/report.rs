//! The report for a terminal.

use std::fmt::Write;

use super::proposal::{Point, Proposal, WindowProposal};
use crate::simulate::report::number::{Count, Malformed, Share};
use crate::simulate::utc::Utc;

/// Returns the report on `proposal`, in lines that end with a line feed. The policy is its last part.
pub(crate) fn render(proposal: &Proposal) -> String {
    let Proposal { requests, subjects, plural, .. } = proposal;
    let mut text = proposal.logs.join(", ");
    if let (Some(from), Some(to)) = (proposal.from, proposal.to) {
        let _ = write!(text, ", {} to {}", Utc::new(from.0), Utc::new(to.0));
    }
    let _ = writeln!(text, "\n  {} requests of {} {plural}", Count(*requests), Count(*subjects));
    for (count, note) in [
        (proposal.requests_without, "without a value, which the policy does not limit"),
        (
            proposal.requests_ambiguous,
            "that services can interpret in different ways, which are answered with 400 and not counted",
        ),
        (proposal.requests_uncounted, "of more subjects than can be counted"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "  {} requests {note}", Count(count));
        }
    }
    if proposal.malformed > 0 {
        let _ = writeln!(text, "  {}", Malformed(proposal.malformed));
    }
    for window in &proposal.windows {
        curve(&mut text, proposal, window);
    }
    text.push('\n');
    if let Some(simulated) = &proposal.simulated {
        let _ = writeln!(
            text,
            "# On the same log this policy refuses {} of {} requests ({}) and {} of {} {plural} ({}).",
            Count(simulated.requests_refused),
            Count(*requests),
            Share::new(simulated.requests_refused, *requests),
            Count(simulated.subjects_refused),
            Count(*subjects),
            Share::new(simulated.subjects_refused, *subjects),
        );
    }
    text.push_str(&proposal.policy);
    text
}

fn curve(text: &mut String, proposal: &Proposal, window: &WindowProposal) {
    let (plural, peak) = (proposal.plural, Count(window.peak));
    let _ = writeln!(text, "\nin {}: at most {peak} requests of one", window.window);
    let _ = writeln!(
        text,
        "  {:>9}  {:>20}  {:>20}",
        "quota",
        format!("refused {plural}"),
        "refused requests"
    );
    for Point { quota, subjects_refused, requests_refused } in &window.curve {
        let cell = |part: u64, whole: u64| format!("{} ({})", Count(part), Share::new(part, whole));
        let mark = match (*quota == window.quota, window.is_used) {
            (true, true) => "  ← proposed",
            (true, false) => "  ← redundant: the other window refuses them",
            (false, _) => "",
        };
        let _ = writeln!(
            text,
            "  {:>9}  {:>20}  {:>20}{mark}",
            Count(*quota),
            cell(*subjects_refused, proposal.subjects),
            cell(*requests_refused, proposal.requests),
        );
    }
}
