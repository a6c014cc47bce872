//! Metrics of decisions, by limit and by rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate::model::StoreError;
use tollgate::model::reading::DecisionSource;
use tollgate::observe::{ByDecider, Decider, DegradedCount, OTHER};
use tollgate_server::metrics::Exposition;

use super::MetricSources;
use super::families::{
    AMBIGUOUS, CANDIDATE, COMPLETIONS, DECISIONS, DEGRADED, REFUSALS, REQUESTS, RESERVATIONS,
    SHADOW,
};

const ADMITTED: &str = "admitted";
const REFUSED: &str = "refused";

/// The most rules with a series of their own. Decisions of further rules are counted together, as
/// [`OTHER`].
const MAX_REPORTED_RULES: usize = 200;

pub(super) fn write(page: &mut Exposition, counted: &MetricSources) {
    let (admitted, refused) = counted.decisions.totals();
    let totals = by_decider(admitted).map(|(source, count)| ([ADMITTED, source], count));
    let totals =
        totals.chain(by_decider(refused).map(|(source, count)| ([REFUSED, source], count)));
    page.family(&REQUESTS, totals);
    limits(page, counted);
    let degraded_counts = degraded(counted.degraded.snapshot());
    page.family(
        &DEGRADED,
        degraded_counts
            .iter()
            .map(|((rule, source, error), count)| ([&**rule, source, error], count)),
    );
    let ambiguous = counted.ambiguous.counts();
    page.family(&AMBIGUOUS, ambiguous.iter().map(|(reason, count)| ([reason.name()], *count)));
    let holds = counted.holds.limits();
    let events = holds.iter().flat_map(|it| {
        let of = |event, count: u64| ([&*it.limit, event], count);
        [
            of("opened", it.opened),
            of("settled", it.settled),
            of("released", it.released),
            of("late", it.late),
            of("unanswered", it.unanswered),
        ]
    });
    page.family(&RESERVATIONS, events);
    let outcomes = counted.completions.counts();
    page.family(
        &COMPLETIONS,
        [
            (["charged"], outcomes.charged),
            (["overrun"], outcomes.overrun),
            (["unknown"], outcomes.lost),
        ],
    );
}

fn limits(page: &mut Exposition, counted: &MetricSources) {
    let limits = counted.decisions.limits();
    let decisions = limits.iter().flat_map(|limit| {
        let of = move |decision, counts| {
            series(counts).map(move |(source, count)| ([&*limit.limit, decision, source], count))
        };
        of(ADMITTED, limit.admitted).chain(of(REFUSED, limit.refused))
    });
    page.family(&DECISIONS, decisions);
    let refusals = limits.iter().flat_map(|limit| {
        series(limit.refusals).map(|(source, count)| ([&*limit.limit, source], count))
    });
    page.family(&REFUSALS, refusals);
    // Most limits have no candidate.
    let is_tried = |count: &([&str; 2], u64)| count.1 > 0;
    let shadow = limits.iter().flat_map(|limit| {
        let of = |decision, count| ([&*limit.limit, decision], count);
        [of(ADMITTED, limit.shadow_admitted), of(REFUSED, limit.shadow_refused)]
    });
    page.family(&SHADOW, shadow.filter(is_tried));
    let compared = limits.iter().filter(|limit| limit.trials.total() > 0).flat_map(|limit| {
        let of = |live, candidate, count| ([&*limit.limit, live, candidate], count);
        [
            of(ADMITTED, ADMITTED, limit.trials.both_admit),
            of(ADMITTED, REFUSED, limit.trials.only_candidate_refuses),
            of(REFUSED, ADMITTED, limit.trials.only_live_refuses),
            of(REFUSED, REFUSED, limit.trials.both_refuse),
        ]
    });
    page.family(&CANDIDATE, compared);
}

fn by_decider(counts: ByDecider) -> impl Iterator<Item = (&'static str, u64)> {
    Decider::ALL.map(Decider::name).into_iter().zip(counts)
}

/// Returns the counts to export, each with the source of its decisions. The count of the source
/// `store` is always exported. The count of another source is exported only if it is not 0, because
/// a series for each limit and every possible source would be a page of zeros.
fn series(counts: ByDecider) -> impl Iterator<Item = (&'static str, u64)> {
    let store = Decider::Store.name();
    by_decider(counts).filter(move |(source, count)| *source == store || *count > 0)
}

/// Returns the numbers of decisions that the store did not make. The keys are the rule, the source
/// that decided instead, and the reason. A rule with the name of the combined series ([`OTHER`]) is
/// counted in that series.
fn degraded(counts: Vec<DegradedCount>) -> BTreeMap<(Arc<str>, &'static str, &'static str), u64> {
    let other: Arc<str> = OTHER.into();
    let (mut degraded_counts, mut rules) = (BTreeMap::new(), Vec::new());
    for DegradedCount { rule, source, decisions } in counts {
        let rule = rule.filter(|rule| {
            if rules.contains(rule) {
                return true;
            }
            let has_room = rules.len() < MAX_REPORTED_RULES;
            if has_room {
                rules.push(Arc::clone(rule));
            }
            has_room
        });
        let rule = rule.unwrap_or_else(|| Arc::clone(&other));
        let error = match source {
            DecisionSource::Fallback(error) | DecisionSource::Failure(error) => reason(error),
            DecisionSource::Store | DecisionSource::DenyCache => "none",
            DecisionSource::Overflow => "full",
        };
        *degraded_counts.entry((rule, Decider::from(source).name(), error)).or_default() +=
            decisions;
    }
    degraded_counts
}

fn reason(error: StoreError) -> &'static str {
    match error {
        StoreError::Full => "full",
        StoreError::Unavailable => "unavailable",
        StoreError::TimedOut => "timed_out",
        StoreError::Corrupt => "corrupt",
        // This version has no name for these errors.
        _ => OTHER,
    }
}
