//! The results for each limit.

use super::super::super::outcome::{LimitOutcome, Outcome};
use super::super::number::Count;
use super::markup::Markup;
use super::summary::meter;

/// Adds a table of the limits that applied to requests.
pub(super) fn section(page: &mut Markup, outcome: &Outcome) {
    page.raw("<section><h2>Limits</h2><p class=\"soft\">").text(&outcome.policy).raw("</p>");
    page.raw("<div class=\"scroll\"><table><thead><tr><th>limit</th><th class=\"n\">requests</th>")
        .raw("<th class=\"n\">admitted</th><th class=\"n\">refused</th><th class=\"n\">refunded</th>")
        .raw("<th class=\"n\">subjects refused</th><th>peak usage</th></tr></thead><tbody>");
    for limit in outcome.limits.iter().filter(|limit| limit.is_evaluated()) {
        row(page, limit);
    }
    page.raw("</tbody></table></div>");
    let unmet: Vec<_> = outcome
        .limits
        .iter()
        .filter(|limit| !limit.is_evaluated())
        .map(|limit| &*limit.name)
        .collect();
    if !unmet.is_empty() {
        page.raw("<p class=\"soft\">No request was evaluated on ")
            .text(unmet.join(", "))
            .raw(".</p>");
    }
    page.raw("</section>");
}

fn row(page: &mut Markup, limit: &LimitOutcome) {
    let counts = limit.counts;
    page.raw("<tr><td class=\"name\">")
        .text(&limit.name)
        .raw("<small>")
        .text(&limit.rule)
        .raw("</small>");
    if let Some(candidate) = &limit.candidate {
        page.raw("<small>candidate ").text(&candidate.rule).raw(": ");
        page.text(Count(candidate.refused())).raw(" would be refused, of which ");
        page.text(Count(candidate.only_candidate_refuses)).raw(" are admitted now; ");
        page.text(Count(candidate.only_live_refuses)).raw(" refused now would be admitted</small>");
    }
    page.raw("</td>");
    for count in [counts.requests, counts.admitted] {
        page.raw("<td class=\"n\">").text(Count(count)).raw("</td>");
    }
    page.raw("<td class=\"n");
    page.raw(if counts.refused > 0 { " hit" } else { "" }).raw("\">").text(Count(counts.refused));
    if limit.shadow_refused > 0 {
        page.raw("<small>").text(Count(limit.shadow_refused)).raw(" in shadow</small>");
    }
    page.raw("</td><td class=\"n\">").text(Count(counts.refunded)).raw("</td><td class=\"n\">");
    page.text(Count(limit.subjects_refused))
        .raw(" of ")
        .text(Count(limit.subjects))
        .raw("</td><td class=\"fill\">");
    meter(
        page,
        if limit.peak >= limit.capacity { "stop" } else { "pass" },
        limit.peak,
        limit.capacity,
    );
    page.raw("<small>")
        .text(Count(limit.peak))
        .raw(" of ")
        .text(Count(limit.capacity))
        .raw("</small></td></tr>");
}
