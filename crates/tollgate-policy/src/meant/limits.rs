//! Limits: from words and numbers to an algorithm.

use std::sync::Arc;

use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::policy::LimitFor;
use tollgate_core::{
    Algorithm, Limit, LimitError, Millis, OnChange, Percent, Refusals, Visibility,
};

use super::candidate::candidate;
use super::holds::reserved;
use super::metered::{Price, price};
use super::mode::decided;
use super::names::Known;
use crate::read::{Field, Given, Named, is_name, quoted};
use crate::report::Report;
use crate::tree::Span;
use crate::written::{self, Kind, Subject};

/// The lease of a concurrency limit that does not say.
const LEASE: Millis = Millis::from_secs(60);

/// Into how many pieces a sliding window is cut that does not say.
const PIECES: u64 = 60;

/// A limit that rules can use.
pub(super) struct Counted {
    pub(super) limit: LimitFor,
    /// What a request costs where its rule does not say.
    pub(super) price: Price,
}

/// The limits in their order; `None` for what is wrong, which is reported.
pub(super) fn limits(
    limits: &Known<'_, written::Limit>,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Vec<Option<Counted>> {
    limits.all().iter().map(|named| counted(named, subjects, report)).collect()
}

fn counted(
    named: &Named<written::Limit>,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<Counted> {
    let written = named.value.as_ref()?;
    let per = per(written, subjects, report);
    let kind = match &written.algorithm {
        Field::Absent => Kind::default(),
        Field::Wrong => return None,
        Field::Given(given) => given.value.0,
    };
    misplaced(kind, written, report);
    let algorithm = algorithm(kind, &named.name, written, report)?;
    let limit = told(&named.name, algorithm, written, report)?;
    let limit = decided(limit, written, report)?;
    let limit = tried(limit, kind, &named.name, written, report)?;
    let price = price(&written.cost, report)?;
    Some(Counted { limit: LimitFor { limit: Arc::new(limit), per: per? }, price })
}

/// The limit, with what is tried of it.
fn tried(
    limit: Limit,
    kind: Kind,
    name: &Given<String>,
    written: &written::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    let enforced = or_default(&written.enforce, |percent| percent.0, Percent::ALL)?;
    let limit = limit.with_enforced(enforced);
    match &written.candidate {
        Field::Absent => Some(limit),
        Field::Wrong => None,
        Field::Given(given) => {
            let candidate = candidate(given, name, (written, kind, limit.algorithm()), report)?;
            Some(limit.with_candidate(candidate))
        }
    }
}

/// The subjects that a limit counts apart.
fn per(
    written: &written::Limit,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<Vec<usize>> {
    let names = written.per.value().map_or(&[][..], |names| &names.0);
    let mut per = Vec::with_capacity(names.len());
    let mut is_whole = true;
    for name in names {
        match subjects.index(&name.value.0, name.at, report) {
            Some(index) if per.contains(&index) => {
                let message = format_args!("the subject {} is there twice", quoted(&name.value.0));
                report.plain_mistake(name.at, message);
            }
            Some(index) => per.push(index),
            None => is_whole = false,
        }
    }
    is_whole.then_some(per)
}

/// Reports keys that mean nothing to the algorithm.
pub(super) fn misplaced(kind: Kind, written: &written::Limit, report: &mut Report<'_>) {
    fn key<T>(field: &Field<T>) -> Option<Span> {
        field.given().map(|given| given.key)
    }
    let uses_window = kind != Kind::Concurrency;
    let keys = [
        ("window", key(&written.window), uses_window, "every algorithm but concurrency"),
        ("burst", key(&written.burst), kind == Kind::TokenBucket, "token_bucket"),
        ("precision", key(&written.precision), kind == Kind::SlidingWindow, "sliding_window"),
        ("anchor", key(&written.anchor), kind == Kind::FixedWindow, "fixed_window"),
        ("lease", key(&written.lease), kind == Kind::Concurrency, "concurrency"),
    ];
    for (name, at, fits, owner) in keys {
        if let (Some(at), false) = (at, fits) {
            let message = format_args!("`{name}` means nothing to {}", kind.word());
            report.mistake(at, message, format_args!("it belongs to {owner}"));
        }
    }
}

/// The algorithm with its numbers.
pub(super) fn algorithm(
    kind: Kind,
    name: &Given<String>,
    written: &written::Limit,
    report: &mut Report<'_>,
) -> Option<Algorithm> {
    let needs_window = kind != Kind::Concurrency;
    if needs_window && written.window.is_absent() {
        let message = format_args!("the limit {} needs `window`", quoted(&name.value));
        report.mistake(name.at, message, "the time that its quota is for, such as window: 1h");
    }
    let quota = written.quota.value()?.0;
    let burst = or_default(&written.burst, |burst| burst.0, quota)?;
    let lease = or_default(&written.lease, |lease| lease.0, LEASE)?;
    let window = match needs_window {
        true => written.window.value()?.0,
        false => Millis::ZERO,
    };
    let piece = Millis::new(window.get().div_ceil(PIECES));
    let precision = or_default(&written.precision, |precision| precision.0, piece)?;
    let anchor = or_default(&written.anchor, |anchor| anchor.0, Default::default())?;
    let built = match kind {
        Kind::FixedWindow => FixedWindow::new(quota, window, anchor).map(Algorithm::FixedWindow),
        Kind::SlidingWindow => {
            SlidingWindow::new(quota, window, precision).map(Algorithm::SlidingWindow)
        }
        Kind::TwoBucket => TwoBucket::new(quota, window).map(Algorithm::TwoBucket),
        Kind::SlidingLog => SlidingLog::new(quota, window).map(Algorithm::SlidingLog),
        Kind::TokenBucket => TokenBucket::new(quota, window, burst).map(Algorithm::TokenBucket),
        Kind::Concurrency => Concurrency::new(quota, lease).map(Algorithm::Concurrency),
    };
    built.map_err(|error| report.plain_mistake(place(&error, name, written), error)).ok()
}

/// What is written, or the default if nothing is; `None` if what is written is wrong.
pub(super) fn or_default<W, T>(field: &Field<W>, value: impl Fn(&W) -> T, default: T) -> Option<T> {
    match field {
        Field::Absent => Some(default),
        Field::Wrong => None,
        Field::Given(given) => Some(value(&given.value)),
    }
}

/// Where the number stands that an error speaks of.
fn place(error: &LimitError, name: &Given<String>, written: &written::Limit) -> Span {
    fn at<T>(field: &Field<T>) -> Option<Span> {
        field.given().map(|given| given.at)
    }
    let what = match error {
        LimitError::Zero(what) | LimitError::TooLarge { what, .. } => what,
        LimitError::PrecisionAboveWindow { .. } => "precision",
        _ => "",
    };
    let named = match what {
        "window" => at(&written.window),
        "burst" => at(&written.burst),
        "precision" | "number of blocks" => at(&written.precision),
        "lease" => at(&written.lease),
        _ => None,
    };
    // A burst that is not written is the quota.
    named.or_else(|| at(&written.quota)).unwrap_or(name.at)
}

/// The limit, with what clients are told of it.
fn told(
    name: &Given<String>,
    algorithm: Algorithm,
    written: &written::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    // A name that is none is reported where it is read.
    let mut limit = Limit::new(&name.value, algorithm).ok()?;
    if let Some(resource) = written.resource.given() {
        if !is_name(&resource.value.0) {
            let message = format_args!("{} is no name", quoted(&resource.value.0));
            report.mistake(resource.at, message, "letters, digits, `_`, `-` and `.`");
            return None;
        }
        limit = limit.with_resource(&resource.value.0).ok()?;
    }
    if let Some(unit) = written.unit.value() {
        limit = limit.with_unit(unit.0);
    }
    if let Some(skew_max) = written.skew_max.value() {
        limit = limit.with_skew_max(skew_max.0);
    }
    let on_change = or_default(&written.on_change, |on_change| on_change.0, OnChange::Keep)?;
    limit = limit.with_on_change(on_change);
    if written.visible.value().is_some_and(|visible| !visible.0) {
        limit = limit.with_visibility(Visibility::Hidden);
    }
    limit = reserved(limit, written, report)?;
    match written.count_refused.given() {
        Some(count) if count.value.0 => limit
            .with_refusals(Refusals::Counted)
            .map_err(|error| report.plain_mistake(count.key, error))
            .ok(),
        _ => Some(limit),
    }
}
