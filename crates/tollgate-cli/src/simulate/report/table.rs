//! The report for a terminal.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::super::outcome::{LimitOutcome, Outcome, Simulation};
use super::super::tally::{Counts, Timeline};
use super::super::utc::Utc;
use super::caveats::caveats;
use super::number::{Count, Difference, Malformed, Share};
use super::side_by_side::lines;
use super::sparkline::sparkline;
use super::times;

/// The number of refusal episodes that are shown for a subject.
const EPISODES_SHOWN: usize = 4;
/// The width of sparklines in columns.
const SPARKLINE_WIDTH: usize = 72;

/// Returns the report on `simulation`, in lines that end with a line feed.
pub(crate) fn render(simulation: &Simulation) -> String {
    let mut text = String::new();
    heading(&mut text, simulation);
    for outcome in simulation.outcomes() {
        let _ = writeln!(text, "\n{}", outcome.policy);
        totals(&mut text, outcome);
        if outcome.limits.iter().any(LimitOutcome::is_evaluated) {
            block(&mut text, &limits(outcome));
        }
        candidates(&mut text, outcome);
        unmet(&mut text, outcome);
        if !outcome.subjects.is_empty() {
            block(&mut text, &subjects(outcome));
        }
    }
    if let Some(other) = &simulation.compare {
        block(&mut text, &compare(&simulation.outcome, other));
    }
    over_time(&mut text, simulation);
    notes(&mut text, simulation);
    text
}

fn heading(text: &mut String, simulation: &Simulation) {
    let _ = write!(text, "{}", simulation.logs.join(", "));
    if let (Some(from), Some(to)) = (simulation.from, simulation.to) {
        let _ = write!(text, ", {} to {}", Utc::new(from.0), Utc::new(to.0));
    }
    text.push('\n');
}

fn totals(text: &mut String, outcome: &Outcome) {
    let Counts { requests, admitted, refused, refunded } = outcome.counts;
    let _ = writeln!(
        text,
        "  {} requests: {} admitted, {} refused ({}), {} refunded",
        Count(requests),
        Count(admitted),
        Count(refused),
        Share::new(refused, requests),
        Count(refunded),
    );
    if let Some(savings) = &outcome.refunds {
        let statuses: Vec<_> = savings.statuses.iter().map(u16::to_string).collect();
        let _ = writeln!(
            text,
            "  refunds for {}: without them {} would have been refused ({})",
            statuses.join(", "),
            Count(savings.refused_without),
            Difference::new(refused, savings.refused_without),
        );
    }
}

fn limits(outcome: &Outcome) -> Table {
    let mut table = table(&[
        "limit", "allows", "requests", "admitted", "refused", "refunded", "subjects", "peak",
    ]);
    for limit in outcome.limits.iter().filter(|limit| limit.is_evaluated()) {
        let Counts { requests, admitted, refused, refunded } = limit.counts;
        let shadow = match limit.shadow_refused {
            0 => String::new(),
            count => format!(" ({} in shadow)", Count(count)),
        };
        table.add_row([
            limit.name.clone(),
            limit.rule.clone(),
            Count(requests).to_string(),
            Count(admitted).to_string(),
            format!("{}{shadow}", Count(refused)),
            Count(refunded).to_string(),
            format!("{} of {} refused", Count(limit.subjects_refused), Count(limit.subjects)),
            format!("{} of {}", Count(limit.peak), Count(limit.capacity)),
        ]);
    }
    align_right(&mut table, 2..=5);
    table
}

fn candidates(text: &mut String, outcome: &Outcome) {
    for limit in &outcome.limits {
        let Some(candidate) = &limit.candidate else { continue };
        let _ = writeln!(
            text,
            "  {}, candidate {}: {} would be refused, of which {} are admitted now; {} refused now would be \
             admitted",
            limit.name,
            candidate.rule,
            Count(candidate.refused()),
            Count(candidate.only_candidate_refuses),
            Count(candidate.only_live_refuses),
        );
    }
}

fn unmet(text: &mut String, outcome: &Outcome) {
    let names: Vec<_> = outcome
        .limits
        .iter()
        .filter(|limit| !limit.is_evaluated())
        .map(|limit| &*limit.name)
        .collect();
    if !names.is_empty() {
        let _ = writeln!(text, "  no request was evaluated on {}", names.join(", "));
    }
}

fn subjects(outcome: &Outcome) -> Table {
    let mut table = table(&["subject", "limit", "requests", "refused", "peak", "refusals"]);
    for subject in &outcome.subjects {
        let mut episodes: Vec<_> =
            subject.refusals.iter().take(EPISODES_SHOWN).map(times::episode).collect();
        if subject.refusals.len() > EPISODES_SHOWN {
            episodes.push(format!("and {} more", subject.refusals.len() - EPISODES_SHOWN));
        }
        table.add_row([
            subject.subject.clone(),
            subject.limit.clone(),
            Count(subject.counts.requests).to_string(),
            Count(subject.counts.refused).to_string(),
            format!("{} of {}", Count(subject.peak), Count(subject.capacity)),
            episodes.join("\n"),
        ]);
    }
    align_right(&mut table, 2..=3);
    table
}

fn compare(first: &Outcome, second: &Outcome) -> Table {
    let mut table = table(&["", &first.policy, &second.policy, "difference"]);
    for line in lines(first, second) {
        let count = |count: Option<u64>| {
            count.map_or_else(|| "–".to_owned(), |count| Count(count).to_string())
        };
        let difference =
            line.first.zip(line.second).map(|(first, second)| Difference::new(first, second));
        table.add_row([
            line.name,
            count(line.first),
            count(line.second),
            difference.map_or_else(String::new, |difference| difference.to_string()),
        ]);
    }
    align_right(&mut table, 1..=3);
    table
}

fn over_time(text: &mut String, simulation: &Simulation) {
    let timeline = &simulation.outcome.over_time;
    let (Some(first), Some(last)) = (timeline.points().first(), timeline.points().last()) else {
        return;
    };
    let (from, to) = (Utc::new(first.time), Utc::new(last.time + timeline.step()));
    let moment = |moment: Utc| format!("{} {}", moment.short_date(), moment.clock());
    let _ = writeln!(text, "\nover time, {} to {}", moment(from), moment(to));
    spark(text, "requests", timeline, |counts| counts.requests);
    let names =
        simulation.compare.as_ref().map(|other| (&simulation.outcome.policy, &other.policy));
    for (index, outcome) in
        simulation.outcomes().enumerate().filter(|(_, outcome)| outcome.counts.refused > 0)
    {
        let name = match (names, index) {
            (None, _) => "refused".to_owned(),
            (Some((name, _)), 0) | (Some((_, name)), _) => format!("refused, {name}"),
        };
        spark(text, &name, &outcome.over_time, |counts| counts.refused);
    }
}

fn spark(text: &mut String, name: &str, timeline: &Timeline, value: impl Fn(Counts) -> u64) {
    let values: Vec<u64> = timeline.points().iter().map(|point| value(point.counts)).collect();
    let most = values.iter().copied().max().unwrap_or(0);
    let span = tollgate::model::Millis::new(timeline.step());
    let _ = writeln!(
        text,
        "  {} {name}, at most {} in {span}",
        sparkline(&values, SPARKLINE_WIDTH),
        Count(most)
    );
}

fn notes(text: &mut String, simulation: &Simulation) {
    for caveat in caveats(simulation) {
        let _ = writeln!(text, "\nnote: {caveat}");
    }
    if simulation.malformed > 0 {
        let _ = writeln!(text, "\n{} skipped, for example", Malformed(simulation.malformed));
    }
    for example in &simulation.malformed_examples {
        let _ = writeln!(
            text,
            "  {}:{}: {}: {}",
            example.log, example.line, example.why, example.excerpt
        );
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().copied());
    table
}

fn align_right(table: &mut Table, columns: std::ops::RangeInclusive<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn block(text: &mut String, table: &Table) {
    text.push('\n');
    for line in table.lines() {
        let _ = writeln!(text, " {}", line.trim_end());
    }
}
