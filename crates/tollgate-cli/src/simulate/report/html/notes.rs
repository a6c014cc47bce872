//! The limitations of the numbers.

use super::super::super::outcome::Simulation;
use super::super::caveats::caveats;
use super::super::number::Malformed;
use super::markup::Markup;

/// Adds the limitations and the malformed lines, if there are any.
pub(super) fn section(page: &mut Markup, simulation: &Simulation) {
    let caveats = caveats(simulation);
    if caveats.is_empty() && simulation.malformed == 0 {
        return;
    }
    page.raw("<section><h2>Limitations</h2>");
    for caveat in caveats {
        page.raw("<p class=\"note\">").text(caveat).raw("</p>");
    }
    if simulation.malformed > 0 {
        malformed(page, simulation);
    }
    page.raw("</section>");
}

fn malformed(page: &mut Markup, simulation: &Simulation) {
    page.raw("<p class=\"note\">")
        .text(Malformed(simulation.malformed))
        .raw(" skipped, for example:</p>");
    page.raw("<div class=\"scroll\"><table><thead><tr><th>where</th><th>why</th><th>line</th></tr></thead><tbody>");
    for example in &simulation.malformed_examples {
        page.raw("<tr><td class=\"name\">")
            .text(&example.log)
            .raw(":")
            .text(example.line)
            .raw("</td><td>");
        page.text(&example.why)
            .raw("</td><td><code>")
            .text(&example.excerpt)
            .raw("</code></td></tr>");
    }
    page.raw("</tbody></table></div>");
}
