//! Converts the key `cost` to the cost of a request, which is known when the request arrives, or
//! only when the response is complete.

use std::num::NonZeroU64;
use std::sync::Arc;

use tollgate_core::Cost;
use tollgate_core::policy::{Meter, ReservationAmount, ReservationSource};

use super::field_name::field_name;
use super::pointer::pointer;
use crate::decode::{Field, Integer};
use crate::raw;
use crate::report::Report;
use crate::span::Span;

/// The cost of a request, as the policy file determines it.
#[derive(Clone)]
pub(super) struct ResolvedCost {
    /// The cost of the request. If the response determines the cost, the units that are reserved by
    /// default.
    pub(super) cost: Cost,
    /// The parts of the response and of the request that determine the cost, if the cost is known
    /// only when the response is complete.
    pub(super) meter: Option<ResolvedMeter>,
}

/// The part of the response from which the cost is read, and the part of the request from which the
/// units to reserve are read.
#[derive(Clone)]
pub(super) struct ResolvedMeter {
    pub(super) meter: Arc<Meter>,
    pub(super) reserve: Option<ReservationAmount>,
}

impl ResolvedCost {
    const ONE: Self = Self { cost: Cost::ONE, meter: None };
}

/// Returns the cost that the key `cost` sets, or one unit if the key is absent. Returns `None`
/// after reporting a mistake.
pub(super) fn price(field: &Field<raw::Cost>, report: &mut Report<'_>) -> Option<ResolvedCost> {
    match field {
        Field::Absent => Some(ResolvedCost::ONE),
        Field::Invalid => None,
        Field::Value(given) => match &given.value {
            raw::Cost::Known(cost) => Some(ResolvedCost { cost: Cost::new(cost.0)?, meter: None }),
            raw::Cost::Metered(raw) => metered(raw, given.at, report),
        },
    }
}

fn metered(raw: &raw::Metered, at: Span, report: &mut Report<'_>) -> Option<ResolvedCost> {
    let sources = [
        source_key("from_header", &raw.from_header),
        source_key("from_json", &raw.from_json),
        source_key("from_size", &raw.from_size),
        source_key("from_time", &raw.from_time),
    ];
    let known = "from_header, from_json, from_size or from_time";
    one_source("a metered cost", &sources, known, at, report)?;
    let (cost, reserve) = reserve(&raw.reserve, report)?;
    let meter = if let Some(header) = raw.from_header.given() {
        Meter::Header { field: field_name(header, "header", report)? }
    } else if let Some(json) = raw.from_json.given() {
        Meter::Json { pointer: pointer(json, report)? }
    } else if let Some(size) = raw.from_size.value() {
        Meter::Size { bytes: NonZeroU64::new(size.0)? }
    } else {
        Meter::Time { each: raw.from_time.value()?.0 }
    };
    Some(ResolvedCost { cost, meter: Some(ResolvedMeter { meter: Arc::new(meter), reserve }) })
}

/// Returns the default number of units to reserve, and the part of the request that can set another
/// number. Returns `None` after reporting a mistake.
fn reserve(
    field: &Field<raw::Reserve>,
    report: &mut Report<'_>,
) -> Option<(Cost, Option<ReservationAmount>)> {
    let given = match field {
        Field::Absent => return Some((Cost::ONE, None)),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let from = match &given.value {
        raw::Reserve::Known(units) => {
            return Some((nonzero_units(*units, given.at, report)?, None));
        }
        raw::Reserve::From(from) => from,
    };
    let sources =
        [source_key("from_header", &from.from_header), source_key("from_json", &from.from_json)];
    one_source("a reservation", &sources, "from_header or from_json", given.at, report)?;
    let source = if let Some(header) = from.from_header.given() {
        ReservationSource::Header { field: field_name(header, "header", report)? }
    } else {
        ReservationSource::Json { pointer: pointer(from.from_json.given()?, report)? }
    };
    let otherwise = from.default.given()?;
    let otherwise = nonzero_units(otherwise.value, otherwise.at, report)?;
    let at_least = bound(&from.min, report)?;
    let at_most = bound(&from.max, report)?;
    if let (Some(least), Some(most), Some(given)) = (at_least, at_most, from.min.given())
        && least > most
    {
        let message = format_args!("at least {} and at most {}", least.get(), most.get());
        report.error(given.at, message, "`min` is not above `max`");
        return None;
    }
    Some((otherwise, Some(ReservationAmount { source, at_least, at_most })))
}

/// Returns the lower or upper bound on the units to reserve. Returns `Some(None)` if the policy
/// does not set this bound, and `None` after reporting a mistake.
fn bound(field: &Field<Integer>, report: &mut Report<'_>) -> Option<Option<Cost>> {
    match field {
        Field::Absent => Some(None),
        Field::Invalid => None,
        Field::Value(bound) => nonzero_units(bound.value, bound.at, report).map(Some),
    }
}

fn nonzero_units(units: Integer, at: Span, report: &mut Report<'_>) -> Option<Cost> {
    if units.0 == 0 {
        report.error(
            at,
            "the reservation is 0 units",
            "reserve at least 1: without a reservation there is no settlement",
        );
        return None;
    }
    Cost::new(units.0)
}

type SourceKey = Option<(&'static str, Option<Span>)>;

fn source_key<T>(key: &'static str, field: &Field<T>) -> SourceKey {
    (!field.is_absent()).then(|| (key, field.given().map(|given| given.key)))
}

/// Returns `Some` if exactly one of `sources` is set. Returns `None` after reporting that none or
/// several are set. `what` is the name of the value in messages, and `known` are the names of all
/// sources.
fn one_source(
    what: &str,
    sources: &[SourceKey],
    known: &str,
    at: Span,
    report: &mut Report<'_>,
) -> Option<()> {
    let mut raw = sources.iter().flatten();
    let Some((first, _)) = raw.next() else {
        report.error(at, format_args!("{what} has no source"), format_args!("one of {known}"));
        return None;
    };
    let Some((second, twice)) = raw.next() else { return Some(()) };
    let message =
        format_args!("{what} has exactly one source, this one has `{first}` and `{second}`");
    report.error(twice.unwrap_or(at), message, "remove one of them");
    None
}
