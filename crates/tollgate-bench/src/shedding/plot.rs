//! Draws the results as a chart. For each second, the chart shows the percentage of critical
//! requests that were served in time, and their latency.

use std::fmt::Write;
use std::ops::Range;

use tollgate::shed::Priority;

use super::figures::Figures;
use super::load::{CLIENT_TIMEOUT, Sent};

const WIDTH: u64 = 760;
const LEFT: u64 = 64;
const RIGHT: u64 = 16;
const PANEL: u64 = 130;
/// The y coordinates of the top edges of the chart's two panels.
const TOPS: [u64; 2] = [64, 244];
const HEIGHT: u64 = 420;

/// The colours of the lines of the runs. Colour-blind readers can distinguish them.
const COLOURS: [&str; 2] = ["#0f766e", "#c2410c"];

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#475569}\
.title{font-weight:600;fill:#0f172a}.line{fill:none;stroke-width:2.5;stroke-linejoin:round}\
.grid{stroke:#e2e8f0}.paper{fill:#fff}.load{fill:#f1f5f9}.end{text-anchor:end}\
.middle{text-anchor:middle}";

/// Draws a chart of two `runs`, which last `seconds` seconds each. The service is overloaded in the
/// seconds `overload`.
#[must_use]
pub fn draw(runs: &[(&str, Vec<Sent>); 2], seconds: u64, overload: &Range<u64>) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>Critical requests at three times the capacity, with shedding and without</title>\n\
         <style>{STYLE}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n"
    );
    for ((name, _), (colour, left)) in runs.iter().zip(COLOURS.into_iter().zip([LEFT, 260])) {
        let text = left + 28;
        write(
            &mut svg,
            format_args!(
                "<rect x=\"{left}\" y=\"14\" width=\"20\" height=\"4\" fill=\"{colour}\"/>\
             <text x=\"{text}\" y=\"21\">{name}</text>\n"
            ),
        );
    }
    let client_timeout = u64::try_from(CLIENT_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    let panels: [(&str, u64, &str, Value); 2] = [
        ("Critical requests served within 1 s", 100, "%", |figures| {
            Some(figures.percent_in_time() as u64)
        }),
        ("p99 latency of those requests", client_timeout, "ms", |figures| {
            figures.percentile(99).and_then(|took| u64::try_from(took.as_millis()).ok())
        }),
    ];
    for (top, (title, most, unit, value)) in TOPS.into_iter().zip(panels) {
        let panel = Panel { top, most, seconds };
        panel.frame(&mut svg, title, unit, overload);
        for ((_, sent), colour) in runs.iter().zip(COLOURS) {
            panel.line(&mut svg, sent, colour, value);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// A function that returns the value of a panel from the results of one second.
type Value = fn(&Figures) -> Option<u64>;

struct Panel {
    top: u64,
    /// The value at the top edge of the panel.
    most: u64,
    seconds: u64,
}

impl Panel {
    fn x(&self, second: u64) -> u64 {
        LEFT + (WIDTH - LEFT - RIGHT) * second / self.seconds.max(1)
    }

    fn y(&self, value: u64) -> u64 {
        self.top + PANEL - PANEL * value.min(self.most) / self.most.max(1)
    }

    fn frame(&self, svg: &mut String, title: &str, unit: &str, overload: &Range<u64>) {
        let (from, to) = (self.x(overload.start), self.x(overload.end));
        let (top, above, width) = (self.top, self.top - 10, to - from);
        let (middle, bottom) = (from.midpoint(to), top + PANEL);
        write(
            svg,
            format_args!(
                "<rect class=\"load\" x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"{PANEL}\"/>\
             <text class=\"title\" x=\"{LEFT}\" y=\"{above}\">{title}</text>\
             <text class=\"middle\" x=\"{middle}\" y=\"{}\">three times the capacity</text>\n",
                // No line crosses the label at this height, neither in a good run nor in a bad run.
                top + PANEL * 3 / 8
            ),
        );
        let right = WIDTH - RIGHT;
        for value in [0, self.most / 2, self.most] {
            let y = self.y(value);
            write(
                svg,
                format_args!(
                    "<path class=\"grid\" d=\"M{LEFT} {y}H{right}\"/>\
                 <text class=\"end\" x=\"{}\" y=\"{}\">{value} {unit}</text>\n",
                    LEFT - 6,
                    y + 4
                ),
            );
        }
        for second in (0..=self.seconds).step_by(5) {
            let (x, y) = (self.x(second), bottom + 18);
            write(
                svg,
                format_args!("<text class=\"middle\" x=\"{x}\" y=\"{y}\">{second} s</text>\n"),
            );
        }
    }

    /// Draws a line through the values of all seconds. The line has a gap at a second without a
    /// value.
    fn line(&self, svg: &mut String, sent: &[Sent], colour: &str, value: Value) {
        let mut path = String::new();
        let mut pen = 'M';
        for second in 0..self.seconds {
            match value(&Figures::of(sent, Priority::Critical, &(second..second + 1))) {
                Some(value) => {
                    let x = self.x(second).midpoint(self.x(second + 1));
                    write(&mut path, format_args!("{pen}{x} {}", self.y(value)));
                    pen = 'L';
                }
                None => pen = 'M',
            }
        }
        write(svg, format_args!("<path class=\"line\" stroke=\"{colour}\" d=\"{path}\"/>\n"));
    }
}

fn write(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    let _ = text.write_fmt(what);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::shedding::load::End;

    #[test]
    fn a_line_for_each_run_in_each_panel_within_the_paper() {
        let sent = |end| {
            let priority = Priority::Critical;
            (0..10).map(|second| Sent { priority, second, end }).collect::<Vec<_>>()
        };
        let runs =
            [("with", sent(End::Served(Duration::from_millis(500)))), ("without", sent(End::Late))];
        let svg = draw(&runs, 10, &(2..8));
        assert_eq!(svg.matches("class=\"line\"").count(), 4);
        let all = format!("M{} {}", LEFT + 34, TOPS[0]);
        let none = format!("M{} {}", LEFT + 34, TOPS[0] + PANEL);
        let half = format!("M{} {}", LEFT + 34, TOPS[1] + PANEL / 2);
        for line in [all, none, half, "d=\"\"".to_owned()] {
            assert!(svg.contains(&line), "{line} is not in {svg}");
        }
    }
}
