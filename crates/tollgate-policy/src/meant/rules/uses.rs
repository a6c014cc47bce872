//! What a rule charges.

use tollgate_core::policy::{ChargeOn, Metered, Use};
use tollgate_core::{Algorithm, Limit};

use super::super::limits::Counted;
use super::super::metered::{Price, price};
use super::super::names::Known;
use crate::read::{Field, Given, OneOrMore, quoted};
use crate::report::Report;
use crate::span::Span;
use crate::written::{self, LimitUse};

/// The limits of a rule, and those of them that are metered; `None` if something is wrong, which is
/// reported.
pub(super) fn uses(
    rule: &written::Rule,
    counted: &[Option<Counted>],
    limits: &mut Known<'_, written::Limit>,
    report: &mut Report<'_>,
) -> Option<(Vec<Use>, Vec<Metered>)> {
    let OneOrMore(written) = rule.limits.value()?;
    let mut uses: Vec<Use> = Vec::with_capacity(written.len());
    let mut metered = Vec::new();
    let mut is_whole = true;
    for given in written {
        let LimitUse { limit, cost } = &given.value;
        let Some(index) = limits.index(&limit.value, limit.at, report) else {
            is_whole = false;
            continue;
        };
        if uses.iter().any(|used| used.limit == index) {
            let message = format_args!("the limit {} is there twice", quoted(&limit.value));
            report.mistake(limit.at, message, "add its costs up");
        }
        // What is wrong with the limit itself was reported there.
        let charged =
            counted[index].as_ref().and_then(|counted| charged(counted, limit, cost, report));
        let Some(Price { cost, meter }) = charged else {
            is_whole = false;
            continue;
        };
        uses.push(Use { limit: index, cost });
        metered.extend(meter.map(|one| Metered {
            limit: index,
            meter: one.meter,
            reserve: one.reserve,
        }));
    }
    if !metered.is_empty() {
        on_arrival(rule, report);
    }
    is_whole.then_some((uses, metered))
}

/// What one request costs.
fn charged(
    counted: &Counted,
    name: &Given<String>,
    cost: &Field<written::Cost>,
    report: &mut Report<'_>,
) -> Option<Price> {
    let (price, at) = match cost {
        Field::Absent => (counted.price.clone(), name.at),
        Field::Wrong => return None,
        Field::Given(given) => (price(cost, report)?, given.at),
    };
    let limit = &*counted.limit.limit;
    if price.meter.is_some() {
        countable(limit, at, report)?;
    }
    let capacity = limit.capacity();
    if price.cost.get() > capacity {
        let what = if price.meter.is_some() { "reservation" } else { "cost" };
        let message = format_args!(
            "a {what} of {} never fits into {}",
            price.cost.get(),
            quoted(&name.value)
        );
        report.mistake(at, message, format_args!("at most {capacity} fit at once"));
        return None;
    }
    Some(price)
}

/// Reports a metered cost of what counts nothing but what is in flight.
fn countable(limit: &Limit, at: Span, report: &mut Report<'_>) -> Option<()> {
    if !matches!(limit.algorithm(), Algorithm::Concurrency(_)) {
        return Some(());
    }
    let message = format_args!("what {} counts ends with its request", quoted(limit.name()));
    report.mistake(at, message, "a metered cost needs a limit with a window");
    None
}

/// Reports a rule that would charge when the answer's head is known, and not its end.
fn on_arrival(rule: &written::Rule, report: &mut Report<'_>) {
    let Some(charge) = rule.charge.given() else { return };
    if charge.value.0 == ChargeOn::Completion {
        let message = "a metered cost is reserved when its request arrives";
        report.mistake(charge.at, message, "leave `charge` out: it is settled with the answer");
    }
}
