//! The report as one HTML page: no network, no script, every chart drawn here.

mod axis;
mod compare;
mod heat;
mod limits;
mod markup;
mod notes;
mod subjects;
mod summary;
mod timeline;

#[cfg(test)]
mod tests;

use super::super::outcome::Simulation;
use super::super::utc::Utc;
use super::number::Malformed;
use markup::Markup;

/// The page that shows `simulation`.
pub(crate) fn render(simulation: &Simulation) -> String {
    let mut page = Markup::default();
    head(&mut page, simulation);
    header(&mut page, simulation);
    summary::cards(&mut page, simulation);
    if let Some(other) = &simulation.compare {
        compare::section(&mut page, &simulation.outcome, other);
    }
    timeline::section(&mut page, simulation);
    for outcome in simulation.outcomes() {
        summary::savings(&mut page, outcome);
        limits::section(&mut page, outcome);
        subjects::section(&mut page, simulation, outcome);
    }
    heat::section(&mut page, simulation);
    notes::section(&mut page, simulation);
    page.raw("<footer>Made by tollgate ").text(env!("CARGO_PKG_VERSION"));
    page.raw(". Times are in UTC. This page needs no network.</footer></main></body></html>\n");
    page.into_string()
}

fn head(page: &mut Markup, simulation: &Simulation) {
    page.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")
        .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")
        .raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">")
        .raw("<title>")
        .text(&simulation.outcome.policy)
        .raw(" – tollgate simulate</title><style>")
        .raw(include_str!("style.css"))
        .raw("</style></head><body><main>");
}

fn header(page: &mut Markup, simulation: &Simulation) {
    page.raw("<header>").raw(GATE).raw("<div><h1>What ").text(&simulation.outcome.policy);
    if let Some(other) = &simulation.compare {
        page.raw(" and ").text(&other.policy);
    }
    page.raw(" would have done</h1><p class=\"lead\">");
    summary::sentence(page, &simulation.outcome);
    page.raw("</p><p class=\"soft\">").text(simulation.logs.join(", "));
    if let (Some(from), Some(to)) = (simulation.from, simulation.to) {
        let moment = |moment: Utc| format!("{} {}", moment.long_date(), moment.clock());
        page.raw(" · ").text(moment(Utc::new(from.0))).raw(" to ").text(moment(Utc::new(to.0)));
    }
    if simulation.malformed > 0 {
        page.raw(" · ").text(Malformed(simulation.malformed));
    }
    page.raw("</p></div></header>");
}

/// A gate with its barrier up.
const GATE: &str = "<svg viewBox=\"0 0 44 44\" aria-hidden=\"true\">\
    <rect class=\"rail\" width=\"44\" height=\"44\" rx=\"11\"/>\
    <rect class=\"pass\" x=\"9\" y=\"17\" width=\"6\" height=\"18\" rx=\"1.5\"/>\
    <g transform=\"rotate(-34 12 19)\"><rect class=\"stop\" x=\"10\" y=\"16.5\" width=\"27\" height=\"5\" rx=\"2.5\"/>\
    <rect fill=\"#fff\" x=\"18\" y=\"16.5\" width=\"4.5\" height=\"5\"/>\
    <rect fill=\"#fff\" x=\"27\" y=\"16.5\" width=\"4.5\" height=\"5\"/></g></svg>";
