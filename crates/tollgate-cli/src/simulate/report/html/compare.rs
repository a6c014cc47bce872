//! The comparison of two policies.

use super::super::super::outcome::Outcome;
use super::super::number::{Count, Difference};
use super::super::side_by_side::{Line, lines};
use super::markup::Markup;

/// Adds a table with the counts of both policies and of their limits.
pub(super) fn section(page: &mut Markup, outcome: &Outcome, other: &Outcome) {
    page.raw("<section><h2>Comparison</h2><p class=\"soft\">The difference is what the second policy would change.</p>");
    page.raw("<div class=\"scroll\"><table><thead><tr><th></th><th class=\"n\">")
        .text(&outcome.policy);
    page.raw("</th><th class=\"n\">")
        .text(&other.policy)
        .raw("</th><th class=\"n\">difference</th></tr></thead><tbody>");
    for Line { name, detail, first, second } in lines(outcome, other) {
        page.raw("<tr><td class=\"name\">")
            .text(name)
            .raw("<small>")
            .text(detail)
            .raw("</small></td>");
        for count in [first, second] {
            page.raw("<td class=\"n\">");
            match count {
                Some(count) => page.text(Count(count)),
                None => page.raw("–"),
            };
            page.raw("</td>");
        }
        page.raw("<td class=\"n\">");
        if let (Some(first), Some(second)) = (first, second) {
            page.text(Difference::new(first, second));
        }
        page.raw("</td></tr>");
    }
    page.raw("</tbody></table></div></section>");
}
