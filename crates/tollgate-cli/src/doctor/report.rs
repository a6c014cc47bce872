//! Prints findings as text or JSON.

use serde_json::json;

use super::{Finding, Level};
use crate::output::Form;

pub(super) fn render(findings: &[Finding], form: Form) -> String {
    match form {
        Form::Text => text(findings),
        Form::Json => {
            let value = json!({ "worst": worst(findings), "findings": findings });
            format!("{value:#}\n")
        }
    }
}

fn worst(findings: &[Finding]) -> Level {
    findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
}

fn text(findings: &[Finding]) -> String {
    let mut lines = String::new();
    for of_one in findings.chunk_by(|one, next| one.target == next.target) {
        let Some(first) = of_one.first() else { continue };
        lines.push_str(&format!("{}\n", first.target));
        for finding in of_one {
            let (mark, check, what) = (mark(finding.level), finding.check, &finding.message);
            lines.push_str(&format!("  {mark:<7}  {check:<12}  {what}\n"));
            if let Some(remedy) = &finding.remedy {
                lines.push_str(&format!("{:25}→ {remedy}\n", ""));
            }
        }
        lines.push('\n');
    }
    lines.push_str(&summary(findings));
    lines
}

fn mark(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Advice => "advice",
        Level::Warning => "warning",
        Level::Problem => "PROBLEM",
    }
}

fn summary(findings: &[Finding]) -> String {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let counted = [
        (count(Level::Problem), "problem", "problems"),
        (count(Level::Warning), "warning", "warnings"),
        (count(Level::Advice), "piece of advice", "pieces of advice"),
    ];
    let counted = counted.into_iter().filter(|(count, ..)| *count > 0);
    let words: Vec<_> = counted
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
    let all = findings.len();
    if words.is_empty() {
        return format!("all {all} checks passed\n");
    }
    format!("{all} checks: {}\n", words.join(", "))
}
