//! The most affected subjects, and when they were refused.

use super::super::super::outcome::{Outcome, Simulation, SubjectOutcome};
use super::super::number::Count;
use super::super::times;
use super::markup::Markup;

/// The number of refusal episodes that are listed as text. The chart shows all of them.
const EPISODES_SHOWN: usize = 3;

/// Adds a table of the subjects. For each subject, a bar shows the requests, and a time line shows
/// the times of the refusals.
pub(super) fn section(page: &mut Markup, simulation: &Simulation, outcome: &Outcome) {
    let (Some(from), Some(to)) = (simulation.from, simulation.to) else {
        return;
    };
    let most = outcome.subjects.iter().map(|subject| subject.counts.requests).max().unwrap_or(0);
    page.raw("<section><h2>Most affected subjects</h2><p class=\"soft\">").text(&outcome.policy);
    page.raw(": sorted by refusals, then by requests. The lane shows when each was refused, from the log's first request ")
        .raw("to its last.</p><div class=\"scroll\"><table><thead><tr><th>subject</th><th class=\"n\">refused</th>")
        .raw("<th class=\"n\">requests</th><th>share of the busiest</th><th class=\"n\">most used</th>")
        .raw("<th>refusals</th></tr></thead><tbody>");
    for subject in &outcome.subjects {
        row(page, subject, most, (from.0, to.0));
    }
    page.raw("</tbody></table></div></section>");
}

fn row(page: &mut Markup, subject: &SubjectOutcome, most: u64, period: (u64, u64)) {
    let counts = subject.counts;
    page.raw("<tr><td class=\"name\">").text(&subject.subject).raw("<small>").text(&subject.limit);
    if !subject.client.is_empty() && !subject.subject.contains(&subject.client) {
        page.raw(" · from ").text(&subject.client);
    }
    page.raw("</small></td><td class=\"n");
    page.raw(if counts.refused > 0 { " hit" } else { "" }).raw("\">").text(Count(counts.refused));
    page.raw("</td><td class=\"n\">").text(Count(counts.requests)).raw("</td><td class=\"fill\">");
    bar(page, subject, most);
    page.raw("</td><td class=\"n\">")
        .text(Count(subject.peak))
        .raw(" of ")
        .text(Count(subject.capacity));
    page.raw("</td><td class=\"when\">");
    if subject.refusals.is_empty() {
        page.raw("<small>never</small>");
    } else {
        lane(page, subject, period);
    }
    page.raw("</td></tr>");
}

/// Adds a bar for the subject's requests, relative to the requests of the busiest subject. The
/// refused requests are at the end of the bar.
fn bar(page: &mut Markup, subject: &SubjectOutcome, most: u64) {
    let width = |part: u64| part.saturating_mul(140) / most.max(1);
    let (all, refused) = (width(subject.counts.requests).max(1), width(subject.counts.refused));
    let refused = if subject.counts.refused > 0 { refused.max(2).min(all) } else { 0 };
    page.raw("<svg viewBox=\"0 0 140 12\" aria-hidden=\"true\"><rect class=\"rail\" width=\"140\" height=\"12\" rx=\"2\"/>");
    page.raw("<rect class=\"pass\" height=\"12\" rx=\"2\" width=\"")
        .text(all)
        .raw("\"/><rect class=\"stop\" height=\"12\" rx=\"2\" x=\"");
    page.text(all - refused).raw("\" width=\"").text(refused).raw("\"/></svg>");
}

fn lane(page: &mut Markup, subject: &SubjectOutcome, (from, to): (u64, u64)) {
    let x =
        |time: u64| u128::from(time.saturating_sub(from)) * 230 / u128::from((to - from).max(1));
    page.raw("<svg viewBox=\"0 0 230 18\" role=\"img\"><title>When it was refused</title>")
        .raw("<rect class=\"rail\" y=\"7\" width=\"230\" height=\"4\" rx=\"2\"/>");
    for episode in &subject.refusals {
        let width = (x(episode.to) - x(episode.from)).max(3);
        page.raw("<rect class=\"stop\" y=\"2\" height=\"14\" rx=\"1\" x=\"")
            .text(x(episode.from).min(227));
        page.raw("\" width=\"")
            .text(width)
            .raw("\"><title>")
            .text(times::episode(episode))
            .raw("</title></rect>");
    }
    page.raw("</svg><small>");
    let shown: Vec<_> = subject.refusals.iter().take(EPISODES_SHOWN).map(times::episode).collect();
    page.text(shown.join("; "));
    if subject.refusals.len() > EPISODES_SHOWN {
        page.raw("; and ").text(subject.refusals.len() - EPISODES_SHOWN).raw(" more");
    }
    page.raw("</small>");
}
