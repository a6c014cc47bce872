//! The report as one self-contained HTML page.

use std::fmt::Write;

use super::markdown::sentence;
use super::summary;
use crate::finding::{Finding, ScenarioResult};
use crate::run::Outcome;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1d2430;background:#fff}table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.2rem .8rem;\
border-bottom:1px solid #d8dee8;text-align:left}td:nth-child(n+2){text-align:right;font-variant-numeric:tabular-nums}\
.held{color:#146c2e}.broken{color:#b3261e}.idle{color:#8a5a00}pre{white-space:pre-wrap}\
@media(prefers-color-scheme:dark){body{color:#e6e9ef;background:#12161d}td,th{border-color:#2c3442}\
.held{color:#6fd58b}.broken{color:#ff8a80}.idle{color:#e8b44a}}";

/// Returns a page with all outcomes.
pub(crate) fn page(outcomes: &[Outcome]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Tollgate under faults</title>\n<style>{STYLE}</style>\n\
         <h1>Tollgate under faults</h1>\n<p>{}.</p>\n",
        summary(outcomes)
    );
    for outcome in outcomes {
        let _ = writeln!(page, "<h2>{}</h2>", escaped(&outcome.scenario.name()));
        match &outcome.found {
            Ok(finding) => section(&mut page, finding),
            Err(error) => {
                let error = escaped(&error.to_string());
                let _ = writeln!(page, "<p class=\"broken\">Could not be carried out: {error}</p>");
            }
        }
    }
    page
}

fn section(page: &mut String, finding: &Finding) {
    let class = match finding.result() {
        ScenarioResult::Passed => "held",
        ScenarioResult::NoEffect => "idle",
        ScenarioResult::Failed => "broken",
    };
    let (did, result) = (escaped(&sentence(finding.did)), finding.result());
    let _ = writeln!(page, "<p>{did}: <strong class=\"{class}\">{result}</strong>.</p>");
    let _ = writeln!(page, "<table><tr><th>figure<th>seen<th>bound");
    for figure in &finding.figures {
        let (what, bound) = (escaped(figure.what), escaped(&figure.bound.to_string()));
        let _ = writeln!(page, "<tr><td>{what}<td>{}<td>{bound}", figure.seen);
    }
    let _ = writeln!(page, "</table>\n<pre>{}</pre>", escaped(&finding.checked.to_string()));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
