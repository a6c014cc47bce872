//! Heat maps of requests and refusals by day and hour.

use super::super::super::outcome::{Outcome, Simulation};
use super::super::super::tally::Counts;
use super::super::number::Count;
use super::markup::Markup;

/// The width and the height of the rectangle of an hour. `LEFT` is the space for the names of days.
const CELL: (u64, u64) = (17, 20);
const LEFT: u64 = 78;

/// Adds a heat map of the requests, and a heat map of the refusals for each policy that refuses
/// requests.
pub(super) fn section(page: &mut Markup, simulation: &Simulation) {
    if simulation.outcome.hours.rows().is_empty() {
        return;
    }
    page.raw("<section><h2>By day and hour</h2><p class=\"soft\">Darker cells have more; hours in UTC.</p>");
    page.raw("<div class=\"two\"><div><h3>requests</h3>");
    map(page, &simulation.outcome, "Requests by day and hour", "pass", "requests", |counts| {
        counts.requests
    });
    page.raw("</div>");
    for (outcome, class) in simulation.outcomes().zip(["stop", "other"]) {
        if outcome.counts.refused > 0 {
            page.raw("<div><h3>refusals, ").text(&outcome.policy).raw("</h3>");
            map(page, outcome, "Refusals by day and hour", class, "refused", |counts| {
                counts.refused
            });
            page.raw("</div>");
        }
    }
    page.raw("</div></section>");
}

fn map(
    page: &mut Markup,
    outcome: &Outcome,
    title: &'static str,
    class: &'static str,
    noun: &'static str,
    value: impl Fn(Counts) -> u64,
) {
    let rows = outcome.hours.rows();
    let most = rows.iter().flat_map(|(_, row)| row.hours).map(&value).max().unwrap_or(0).max(1);
    let height = rows.len() as u64 * CELL.1;
    page.raw("<svg class=\"chart\" role=\"img\" viewBox=\"0 0 490 ")
        .text(height + 22)
        .raw("\"><title>");
    page.raw(title).raw("</title>");
    for (y, (day, row)) in (0..).step_by(20).zip(&rows) {
        page.raw("<text x=\"0\" y=\"").text(y + 14).raw("\">").text(day).raw("</text>");
        for (hour, counts) in (0_u64..).zip(row.hours) {
            let count = value(counts);
            page.raw("<rect rx=\"3\" width=\"15\" height=\"18\" x=\"").text(LEFT + hour * CELL.0);
            page.raw("\" y=\"").text(y).raw("\" class=\"").raw(if count > 0 {
                class
            } else {
                "rail"
            });
            page.raw("\" fill-opacity=\"").text(format_args!(".{:02}", opacity(count, most)));
            page.raw("\"><title>").text(day).raw(", ").text(format_args!("{hour:02}:00: "));
            page.text(Count(count)).raw(" ").raw(noun).raw("</title></rect>");
        }
    }
    for hour in [0, 6, 12, 18] {
        page.raw("<text x=\"")
            .text(LEFT + hour * CELL.0)
            .raw("\" y=\"")
            .text(height + 14)
            .raw("\">");
        page.text(format_args!("{hour:02}")).raw("</text>");
    }
    page.raw("</svg>");
}

/// Returns the opacity, in percent, of the rectangle of an hour with `count` requests or refusals.
/// `most` is the largest count of all hours. A rectangle with a count above zero is always visible.
fn opacity(count: u64, most: u64) -> u128 {
    if count == 0 { 99 } else { 18 + u128::from(count) * 81 / u128::from(most) }
}
