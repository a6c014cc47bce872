//! Converts the key `limits` of a rule to the limits that the rule charges.

use tollgate_core::policy::{ChargeOn, LimitRef, MeteredLimit};
use tollgate_core::{Algorithm, Limit};

use super::super::limits::ResolvedLimit;
use super::super::metered::{ResolvedCost, price};
use super::super::names::NameTable;
use crate::decode::{Field, OneOrMore, Spanned, quoted};
use crate::raw::{self, LimitUse};
use crate::report::Report;
use crate::span::Span;

/// Returns the limits that a rule charges, and those of them on which the cost is metered. Returns
/// `None` after reporting a mistake.
pub(super) fn uses(
    rule: &raw::Rule,
    counted: &[Option<ResolvedLimit>],
    limits: &mut NameTable<'_, raw::Limit>,
    report: &mut Report<'_>,
) -> Option<(Vec<LimitRef>, Vec<MeteredLimit>)> {
    let OneOrMore(raw) = rule.limits.value()?;
    let mut uses: Vec<LimitRef> = Vec::with_capacity(raw.len());
    let mut metered = Vec::new();
    let mut is_complete = true;
    for given in raw {
        let LimitUse { limit, cost } = &given.value;
        let Some(index) = limits.index(&limit.value, limit.at, report) else {
            is_complete = false;
            continue;
        };
        if uses.iter().any(|used| used.limit == index) {
            let message = format_args!("duplicate limit {}", quoted(&limit.value));
            report.error(limit.at, message, "list it once with the sum of its costs");
        }
        // A mistake in the limit itself is already reported.
        let charged =
            counted[index].as_ref().and_then(|counted| charged(counted, limit, cost, report));
        let Some(ResolvedCost { cost, meter }) = charged else {
            is_complete = false;
            continue;
        };
        uses.push(LimitRef { limit: index, cost });
        metered.extend(meter.map(|one| MeteredLimit {
            limit: index,
            meter: one.meter,
            reserve: one.reserve,
        }));
    }
    if !metered.is_empty() {
        reject_upstream_condition(rule, report);
    }
    is_complete.then_some((uses, metered))
}

/// Returns the cost of one request on a limit, or `None` after reporting a mistake.
fn charged(
    counted: &ResolvedLimit,
    name: &Spanned<String>,
    cost: &Field<raw::Cost>,
    report: &mut Report<'_>,
) -> Option<ResolvedCost> {
    let (price, at) = match cost {
        Field::Absent => (counted.price.clone(), name.at),
        Field::Invalid => return None,
        Field::Value(given) => (price(cost, report)?, given.at),
    };
    let limit = &*counted.limit.limit;
    if price.meter.is_some() {
        countable(limit, at, report)?;
    }
    let capacity = limit.capacity();
    if price.cost.get() > capacity {
        let what = if price.meter.is_some() { "reservation" } else { "cost" };
        let message = format_args!(
            "a {what} of {} exceeds the capacity of {}",
            price.cost.get(),
            quoted(&name.value)
        );
        report.error(at, message, format_args!("the most is {capacity}"));
        return None;
    }
    Some(price)
}

/// Returns `Some` if the cost on `limit` can be metered. Returns `None` after reporting that
/// `limit` is a concurrency limit, which only counts requests in flight.
fn countable(limit: &Limit, at: Span, report: &mut Report<'_>) -> Option<()> {
    if !matches!(limit.algorithm(), Algorithm::Concurrency(_)) {
        return Some(());
    }
    let message = format_args!(
        "{} counts requests in flight, which have no metered cost",
        quoted(limit.name())
    );
    report.error(at, message, "use a limit with a window for a metered cost");
    None
}

/// Reports a rule that has a metered cost and charges on completion. Such a rule charges when the
/// head of the response is known, but a metered cost is known only at the end of the response.
fn reject_upstream_condition(rule: &raw::Rule, report: &mut Report<'_>) {
    let Some(charge) = rule.charge.given() else { return };
    if charge.value.0 == ChargeOn::Completion {
        let message = "a metered cost is reserved when the request arrives";
        report.error(charge.at, message, "remove `charge`: the cost is settled with the response");
    }
}
