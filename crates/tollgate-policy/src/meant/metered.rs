//! What requests cost: known when they arrive, or only with their answers.

use std::num::NonZeroU64;
use std::sync::Arc;

use tollgate_core::Cost;
use tollgate_core::policy::{Meter, Reserve, ReserveSource};

use super::field_name::field_name;
use super::pointer::pointer;
use crate::read::{Field, Whole};
use crate::report::Report;
use crate::span::Span;
use crate::written;

/// What a request costs.
#[derive(Clone)]
pub(super) struct Price {
    /// The cost, or what is reserved of a request that does not say.
    pub(super) cost: Cost,
    /// What tells the cost afterwards, where that is not known before.
    pub(super) meter: Option<Metering>,
}

/// What of the answer tells the cost, and what of the request how much to reserve.
#[derive(Clone)]
pub(super) struct Metering {
    pub(super) meter: Arc<Meter>,
    pub(super) reserve: Option<Reserve>,
}

impl Price {
    const ONE: Self = Self { cost: Cost::ONE, meter: None };
}

/// The price that is written, or one unit; `None` for what is wrong, which is reported.
pub(super) fn price(field: &Field<written::Cost>, report: &mut Report<'_>) -> Option<Price> {
    match field {
        Field::Absent => Some(Price::ONE),
        Field::Wrong => None,
        Field::Given(given) => match &given.value {
            written::Cost::Known(cost) => Some(Price { cost: Cost::new(cost.0)?, meter: None }),
            written::Cost::Metered(written) => metered(written, given.at, report),
        },
    }
}

fn metered(written: &written::Metered, at: Span, report: &mut Report<'_>) -> Option<Price> {
    let sources = [
        place("from_header", &written.from_header),
        place("from_json", &written.from_json),
        place("from_size", &written.from_size),
        place("from_time", &written.from_time),
    ];
    let known = "from_header, from_json, from_size or from_time";
    one_source("a metered cost", &sources, known, at, report)?;
    let (cost, reserve) = reserve(&written.reserve, report)?;
    let meter = if let Some(header) = written.from_header.given() {
        Meter::Header { field: field_name(header, "header", report)? }
    } else if let Some(json) = written.from_json.given() {
        Meter::Json { pointer: pointer(json, report)? }
    } else if let Some(size) = written.from_size.value() {
        Meter::Size { bytes: NonZeroU64::new(size.0)? }
    } else {
        Meter::Time { each: written.from_time.value()?.0 }
    };
    Some(Price { cost, meter: Some(Metering { meter: Arc::new(meter), reserve }) })
}

/// What is reserved of a request that does not say, and what says otherwise.
fn reserve(
    field: &Field<written::Reserve>,
    report: &mut Report<'_>,
) -> Option<(Cost, Option<Reserve>)> {
    let given = match field {
        Field::Absent => return Some((Cost::ONE, None)),
        Field::Wrong => return None,
        Field::Given(given) => given,
    };
    let from = match &given.value {
        written::Reserve::Known(units) => {
            return Some((some_units(*units, given.at, report)?, None));
        }
        written::Reserve::From(from) => from,
    };
    let sources = [place("from_header", &from.from_header), place("from_json", &from.from_json)];
    one_source("what is reserved", &sources, "from_header or from_json", given.at, report)?;
    let source = if let Some(header) = from.from_header.given() {
        ReserveSource::Header { field: field_name(header, "header", report)? }
    } else {
        ReserveSource::Json { pointer: pointer(from.from_json.given()?, report)? }
    };
    let otherwise = from.otherwise.given()?;
    let otherwise = some_units(otherwise.value, otherwise.at, report)?;
    let at_most = match &from.at_most {
        Field::Absent => None,
        Field::Wrong => return None,
        Field::Given(most) => Some(some_units(most.value, most.at, report)?),
    };
    Some((otherwise, Some(Reserve { source, at_most })))
}

fn some_units(units: Whole, at: Span, report: &mut Report<'_>) -> Option<Cost> {
    if units.0 == 0 {
        report.mistake(at, "nothing is reserved", "at least 1: what is not held is not settled");
        return None;
    }
    Cost::new(units.0)
}

type Place = Option<(&'static str, Option<Span>)>;

fn place<T>(key: &'static str, field: &Field<T>) -> Place {
    (!field.is_absent()).then(|| (key, field.given().map(|given| given.key)))
}

/// Checks that exactly one of the sources is written.
fn one_source(
    what: &str,
    sources: &[Place],
    known: &str,
    at: Span,
    report: &mut Report<'_>,
) -> Option<()> {
    let mut written = sources.iter().flatten();
    let Some((first, _)) = written.next() else {
        report.mistake(at, format_args!("{what} has no source"), format_args!("one of {known}"));
        return None;
    };
    let Some((second, twice)) = written.next() else { return Some(()) };
    let message = format_args!("{what} has one source, this one has `{first}` and `{second}`");
    report.mistake(twice.unwrap_or(at), message, "leave one of them out");
    None
}
