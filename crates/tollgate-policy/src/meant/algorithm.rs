//! Algorithms: how a limit counts, with its numbers.

use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{Algorithm, LimitError, Millis};

use crate::read::{Field, Given, quoted};
use crate::report::Report;
use crate::span::Span;
use crate::written::{self, Kind};

/// The lease of a concurrency limit that does not say.
const LEASE: Millis = Millis::from_secs(60);

/// Into how many pieces a sliding window is cut that does not say.
const PIECES: u64 = 60;

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
    let burst = written.burst.or_default(|burst| burst.0, quota)?;
    let lease = written.lease.or_default(|lease| lease.0, LEASE)?;
    let window = match needs_window {
        true => written.window.value()?.0,
        false => Millis::ZERO,
    };
    let piece = Millis::new(window.get().div_ceil(PIECES));
    let precision = written.precision.or_default(|precision| precision.0, piece)?;
    let anchor = written.anchor.or_default(|anchor| anchor.0, Default::default())?;
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
