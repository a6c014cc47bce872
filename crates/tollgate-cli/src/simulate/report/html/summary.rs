//! The result in a sentence and a few large numbers, and the effect of refunds.

use super::super::super::outcome::{Outcome, Savings, Simulation};
use super::super::number::{Count, Difference, Malformed, Share};
use super::markup::Markup;

/// Adds a sentence such as `15 of 10,000 requests would have been refused, from 2 of 1,753
/// subjects.`
pub(super) fn sentence(page: &mut Markup, outcome: &Outcome) {
    let counts = outcome.counts;
    if counts.refused == 0 {
        page.raw("None of ").text(Count(counts.requests)).raw(" requests would have been refused.");
        return;
    }
    page.text(Count(counts.refused)).raw(" of ").text(Count(counts.requests));
    page.raw(" requests would have been refused (")
        .text(Share::new(counts.refused, counts.requests))
        .raw(")");
    let hit: Vec<_> = outcome.limits.iter().filter(|limit| limit.counts.refused > 0).collect();
    for (at, limit) in hit.iter().enumerate() {
        page.raw(if at == 0 { ": " } else { "; " }).text(&limit.name).raw(" refused ");
        page.text(Count(limit.subjects_refused))
            .raw(" of ")
            .text(Count(limit.subjects))
            .raw(" subjects");
    }
    page.raw(".");
}

/// Adds the cards with the large numbers.
pub(super) fn cards(page: &mut Markup, simulation: &Simulation) {
    let counts = simulation.outcome.counts;
    let other = simulation.compare.as_ref().map(|other| other.counts);
    page.raw("<ul class=\"cards\">");
    card(page, "", "requests", counts.requests, None);
    page.raw("<span>").text(Malformed(simulation.malformed)).raw(" left out</span></li>");
    card(page, "pass", "admitted", counts.admitted, other.map(|other| other.admitted));
    share(page, Share::new(counts.admitted, counts.requests));
    card(page, "stop", "refused", counts.refused, other.map(|other| other.refused));
    share(page, Share::new(counts.refused, counts.requests));
    card(page, "", "refunded", counts.refunded, other.map(|other| other.refunded));
    share(page, Share::new(counts.refunded, counts.requests));
    page.raw("</ul>");
}

/// Adds the start of a card: a name and its count. [`share`] adds the rest.
fn card(
    page: &mut Markup,
    class: &'static str,
    name: &'static str,
    count: u64,
    other: Option<u64>,
) {
    page.raw("<li class=\"")
        .raw(class)
        .raw("\"><span>")
        .raw(name)
        .raw("</span><b>")
        .text(Count(count))
        .raw("</b>");
    if let Some(other) = other {
        page.raw("<span>compared: ")
            .text(Count(other))
            .raw(" (")
            .text(Difference::new(count, other))
            .raw(")</span>");
    }
}

fn share(page: &mut Markup, share: Share) {
    page.raw("<span>").text(share).raw(" of all</span></li>");
}

/// Adds the effect of refunds, for a policy that has refunds.
pub(super) fn savings(page: &mut Markup, outcome: &Outcome) {
    let Some(Savings { statuses, refused_without, .. }) = &outcome.refunds else {
        return;
    };
    let statuses: Vec<_> = statuses.iter().map(u16::to_string).collect();
    page.raw("<section><h2>Effect of refunds</h2><p class=\"soft\">")
        .text(&outcome.policy)
        .raw(" refunded ");
    page.text(Count(outcome.counts.refunded))
        .raw(" requests because their responses had the status ");
    page.text(statuses.join(" or ")).raw(".</p><div class=\"sum\">");
    let refused = outcome.counts.refused;
    let most = refused.max(*refused_without);
    for (name, refused, class) in
        [("without refunds", *refused_without, "free"), ("with refunds", refused, "stop")]
    {
        page.raw("<span>").raw(name).raw("</span>");
        meter(page, class, refused, most);
        page.raw("<span>").text(Count(refused)).raw(" refused</span>");
    }
    page.raw("</div></section>");
}

/// Adds a horizontal bar that shows the share of `part` in `whole`.
pub(super) fn meter(page: &mut Markup, class: &'static str, part: u64, whole: u64) {
    let width = f64::from(
        u32::try_from(u128::from(part) * 10_000 / u128::from(whole.max(1))).unwrap_or(10_000),
    ) / 100.0;
    page.raw("<svg viewBox=\"0 0 100 12\" preserveAspectRatio=\"none\" aria-hidden=\"true\">")
        .raw("<rect class=\"rail\" width=\"100\" height=\"12\"/><rect class=\"")
        .raw(class)
        .raw("\" width=\"")
        .text(width.min(100.0))
        .raw("\" height=\"12\"/></svg>");
}
