//! Requests and refusals over time.

use super::super::super::outcome::{Outcome, Simulation};
use super::super::super::tally::{Point, Timeline};
use super::super::super::utc::{DAY, Utc};
use super::super::number::Count;
use super::axis::{round_marks, time_marks};
use super::markup::Markup;

/// The left edge of the plot in a drawing that is as wide as the page.
const LEFT: f64 = 52.0;
const WIDTH: f64 = 1_010.0;
const TOP: f64 = 8.0;
/// The space for the labels below the plot.
const FOOTER_HEIGHT: f64 = 24.0;

/// A part of a bar: its colour and its height.
type Part = (&'static str, u64);

/// Adds the charts, and a table with their numbers.
pub(super) fn section(page: &mut Markup, simulation: &Simulation) {
    let timeline = &simulation.outcome.over_time;
    if timeline.points().is_empty() {
        return;
    }
    page.raw("<section><h2>Over time</h2><p class=\"soft\">Requests in steps of ")
        .text(step(timeline.step()));
    page.raw("</p><ul class=\"key\"><li><i class=\"bg-pass\"></i>admitted and charged</li>")
        .raw("<li><i class=\"bg-free\"></i>admitted and refunded</li><li><i class=\"bg-stop\"></i>refused</li></ul>");
    let stacked = |index: usize| {
        let counts = timeline.points()[index].counts;
        vec![
            ("pass", counts.admitted - counts.refunded),
            ("free", counts.refunded),
            ("stop", counts.refused),
        ]
    };
    chart(page, "Requests over time", timeline, 240.0, Bars::Stacked, stacked);
    refusals(page, simulation);
    table(page, simulation);
    page.raw("</section>");
}

/// Adds the chart of the refusals. This chart has a scale of its own, because refusals are few
/// compared with admitted requests.
fn refusals(page: &mut Markup, simulation: &Simulation) {
    if simulation.outcomes().all(|outcome| outcome.counts.refused == 0) {
        return;
    }
    let timeline = &simulation.outcome.over_time;
    page.raw("<h3 style=\"margin-top:22px\">Refusals, on a separate scale</h3>");
    if let Some(other) = &simulation.compare {
        page.raw("<ul class=\"key\"><li><i class=\"bg-stop\"></i>")
            .text(&simulation.outcome.policy);
        page.raw("</li><li><i class=\"bg-other\"></i>").text(&other.policy).raw("</li></ul>");
    }
    let parts = |index: usize| {
        let refused = |outcome: &Outcome| refused(outcome.over_time.points(), index);
        let mut parts = vec![("stop", refused(&simulation.outcome))];
        parts.extend(simulation.compare.as_ref().map(|other| ("other", refused(other))));
        parts
    };
    chart(page, "Refusals over time", timeline, 110.0, Bars::SideBySide, parts);
}

/// The arrangement of the parts of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bars {
    Stacked,
    SideBySide,
}

/// Adds a bar chart with this `height`. `parts` returns the parts of the bar at each point.
fn chart(
    page: &mut Markup,
    title: &'static str,
    timeline: &Timeline,
    height: f64,
    bars: Bars,
    parts: impl Fn(usize) -> Vec<Part>,
) {
    let points = timeline.points();
    let heights = |index| {
        let values = parts(index).into_iter().map(|(_, value)| value);
        if bars == Bars::Stacked { values.sum() } else { values.max().unwrap_or(0) }
    };
    let most = (0..points.len()).map(heights).max().unwrap_or(0);
    let marks = round_marks(most, 4);
    let scale = height / as_float(marks.last().copied().unwrap_or(1).max(1));
    page.raw("<svg class=\"chart\" role=\"img\" viewBox=\"0 0 1072 ")
        .text(TOP + height + FOOTER_HEIGHT)
        .raw("\"><title>");
    page.raw(title).raw("</title>");
    grid(page, &marks, height, scale);
    let slot = WIDTH / as_float(points.len() as u64);
    for (index, point) in points.iter().enumerate() {
        let values = parts(index);
        if values.iter().all(|(_, value)| *value == 0) {
            continue;
        }
        page.raw("<g class=\"bar\"><title>")
            .text(describe(point, timeline.step(), &values, bars))
            .raw("</title>");
        bar(page, LEFT + slot * as_float(index as u64), slot, height, scale, bars, &values);
        page.raw("</g>");
    }
    times(page, timeline, height);
    page.raw("</svg>");
}

fn bar(page: &mut Markup, x: f64, slot: f64, height: f64, scale: f64, bars: Bars, parts: &[Part]) {
    let gap = if slot > 4.0 { 1.0 } else { slot * 0.15 };
    let share = if bars == Bars::Stacked { 1.0 } else { as_float(parts.len() as u64) };
    let width = (slot - gap) / share;
    let (mut x, mut base) = (x, TOP + height);
    for (class, value) in parts.iter().filter(|(_, value)| bars == Bars::SideBySide || *value > 0) {
        // A value above zero is always thick enough to see.
        let tall = if *value == 0 { 0.0 } else { (as_float(*value) * scale).max(1.5) };
        page.raw("<rect class=\"").raw(class).raw("\" x=\"").text(format_args!("{x:.2}"));
        page.raw("\" y=\"").text(format_args!("{:.2}", base - tall)).raw("\" width=\"");
        page.text(format_args!("{width:.2}"))
            .raw("\" height=\"")
            .text(format_args!("{tall:.2}"))
            .raw("\"/>");
        match bars {
            Bars::Stacked => base -= tall,
            Bars::SideBySide => x += width,
        }
    }
}

fn grid(page: &mut Markup, marks: &[u64], height: f64, scale: f64) {
    for mark in marks {
        let y = TOP + height - as_float(*mark) * scale;
        page.raw("<line class=\"grid\" x1=\"52\" x2=\"1062\" y1=\"")
            .text(format_args!("{y:.1}"))
            .raw("\" y2=\"");
        page.text(format_args!("{y:.1}")).raw("\"/><text x=\"44\" text-anchor=\"end\" y=\"");
        page.text(format_args!("{:.1}", y + 4.0)).raw("\">").text(Count(*mark)).raw("</text>");
    }
}

fn times(page: &mut Markup, timeline: &Timeline, height: f64) {
    let points = timeline.points();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    let end = last.time + timeline.step();
    for (time, label) in time_marks(first.time, end, 8) {
        let x = LEFT + WIDTH * as_float(time - first.time) / as_float(end - first.time);
        page.raw("<line class=\"grid\" y1=\"")
            .text(TOP + height)
            .raw("\" y2=\"")
            .text(TOP + height + 5.0);
        page.raw("\" x1=\"")
            .text(format_args!("{x:.1}"))
            .raw("\" x2=\"")
            .text(format_args!("{x:.1}"));
        page.raw("\"/><text text-anchor=\"middle\" y=\"").text(TOP + height + 19.0).raw("\" x=\"");
        page.text(format_args!("{x:.1}")).raw("\">").text(label).raw("</text>");
    }
}

fn describe(point: &Point, step: u64, parts: &[Part], bars: Bars) -> String {
    let span = span(point.time, step);
    if bars == Bars::SideBySide {
        let refused: Vec<_> = parts.iter().map(|(_, value)| Count(*value).to_string()).collect();
        return format!("{span}: {} refused", refused.join(" and "));
    }
    let counts = point.counts;
    format!(
        "{span}: {} requests, {} refused, {} refunded",
        Count(counts.requests),
        Count(counts.refused),
        Count(counts.refunded)
    )
}

fn table(page: &mut Markup, simulation: &Simulation) {
    let timeline = &simulation.outcome.over_time;
    page.raw("<details><summary>Show the numbers</summary><div class=\"scroll\"><table><thead><tr><th>from</th>")
        .raw("<th class=\"n\">requests</th><th class=\"n\">admitted</th><th class=\"n\">refunded</th>")
        .raw("<th class=\"n\">refused</th>");
    if simulation.compare.is_some() {
        page.raw("<th class=\"n\">refused by the second policy</th>");
    }
    page.raw("</tr></thead><tbody>");
    for (index, point) in timeline.points().iter().enumerate() {
        let counts = point.counts;
        page.raw("<tr><td>").text(Utc::new(point.time)).raw("</td>");
        let other =
            simulation.compare.as_ref().map(|other| refused(other.over_time.points(), index));
        for count in [counts.requests, counts.admitted, counts.refunded, counts.refused]
            .into_iter()
            .chain(other)
        {
            page.raw("<td class=\"n\">").text(Count(count)).raw("</td>");
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div></details>");
}

fn refused(points: &[Point], index: usize) -> u64 {
    points.get(index).map_or(0, |point| point.counts.refused)
}

/// Describes a span of time, such as `17 May 10:00 to 10:30`.
fn span(from: u64, step: u64) -> String {
    let (start, end) = (Utc::new(from), Utc::new(from + step));
    match step {
        0..60_000 => format!("{} {}", start.short_date(), start.clock_with_seconds()),
        60_000..DAY => format!("{} {} to {}", start.short_date(), start.clock(), end.clock()),
        DAY => start.long_date(),
        _ => format!("from {}", start.long_date()),
    }
}

/// Returns the length of a step in words.
fn step(millis: u64) -> String {
    tollgate::model::Millis::new(millis).to_string()
}

/// Converts a count to a floating-point number, for drawing only: counts beyond 2^53 lose their
/// last digits, which no screen can show.
#[expect(clippy::cast_precision_loss, reason = "pixels")]
fn as_float(count: u64) -> f64 {
    count as f64
}
