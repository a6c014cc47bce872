//! Converts the keys of a limit to its algorithm, with its quota, its window and other numbers.

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{Algorithm, LimitError, Millis};

use super::calendar::{Windows, windows};
use crate::decode::{Field, Spanned, quoted};
use crate::raw::{self, Amount, Kind};
use crate::report::Report;
use crate::span::Span;

/// The default `permit_ttl` of a concurrency limit.
const PERMIT_TTL: Millis = Millis::from_secs(60);

/// The hint of the error message for a quota of 0.
pub(super) const ZERO_QUOTA: &str =
    "a rule with `limits: []` exempts requests; an override of a limit to blocked refuses them";

/// The default number of blocks in a sliding window.
const PIECES: u64 = 60;

/// Reports keys of a limit that have no meaning for the algorithm `kind`.
pub(super) fn misplaced(kind: Kind, raw: &raw::Limit, report: &mut Report<'_>) {
    fn key<T>(field: &Field<T>) -> Option<Span> {
        field.given().map(|given| given.key)
    }
    let uses_window = kind != Kind::Concurrency;
    let keys = [
        ("window", key(&raw.window), uses_window, "every algorithm except concurrency"),
        ("timezone", key(&raw.timezone), uses_window, "fixed_window"),
        ("week_start", key(&raw.week_start), uses_window, "fixed_window"),
        ("billing_day", key(&raw.billing_day), uses_window, "fixed_window"),
        ("burst", key(&raw.burst), kind == Kind::TokenBucket, "token_bucket"),
        ("precision", key(&raw.precision), kind == Kind::SlidingWindow, "sliding_window"),
        ("anchor", key(&raw.anchor), kind == Kind::FixedWindow, "fixed_window"),
        ("permit_ttl", key(&raw.permit_ttl), kind == Kind::Concurrency, "concurrency"),
    ];
    for (name, at, fits, owner) in keys {
        if let (Some(at), false) = (at, fits) {
            let message = format_args!("`{name}` has no meaning for {}", kind.word());
            report.error(at, message, format_args!("it belongs to {owner}"));
        }
    }
}

/// Returns the algorithm `kind` with the numbers from the policy file. Returns `None` after
/// reporting a mistake.
pub(super) fn algorithm(
    kind: Kind,
    name: &Spanned<String>,
    raw: &raw::Limit,
    report: &mut Report<'_>,
) -> Option<Algorithm> {
    let needs_window = kind != Kind::Concurrency;
    if needs_window && raw.window.is_absent() {
        let message = format_args!("the limit {} needs `window`", quoted(&name.value));
        report.error(name.at, message, "the time that the quota is for, such as window: 1h");
    }
    let quota = raw.quota.value()?.default()?;
    let burst = raw.burst.or_default(Amount::default, Some(quota))??;
    let permit_ttl = raw.permit_ttl.or_default(|ttl| ttl.0, PERMIT_TTL)?;
    let anchor = raw.anchor.or_default(|anchor| anchor.0, Default::default())?;
    let (window, anchor) = match needs_window {
        true => match windows(kind, raw.window.given()?, raw, report)? {
            Windows::Fixed(length) => (length, anchor),
            Windows::Scheduled(schedule) => (schedule.longest(), Anchor::Scheduled(schedule)),
        },
        false => (Millis::ZERO, anchor),
    };
    let piece = Millis::new(window.get().div_ceil(PIECES));
    let precision = raw.precision.or_default(|precision| precision.0, piece)?;
    let built = match kind {
        Kind::FixedWindow => FixedWindow::new(quota, window, anchor).map(Algorithm::FixedWindow),
        Kind::SlidingWindow => {
            SlidingWindow::new(quota, window, precision).map(Algorithm::SlidingWindow)
        }
        Kind::TwoBucket => TwoBucket::new(quota, window).map(Algorithm::TwoBucket),
        Kind::SlidingLog => SlidingLog::new(quota, window).map(Algorithm::SlidingLog),
        Kind::TokenBucket => TokenBucket::new(quota, window, burst).map(Algorithm::TokenBucket),
        Kind::Concurrency => Concurrency::new(quota, permit_ttl).map(Algorithm::Concurrency),
    };
    let refused = |error: LimitError| match error {
        LimitError::Zero("quota") => report.error(span(&error, name, raw), error, ZERO_QUOTA),
        _ => report.plain_error(span(&error, name, raw), error),
    };
    built.map_err(refused).ok()
}

/// Returns the position in the file of the number that caused `error`. If the number has no key of
/// its own in the file, returns the position of the quota, or of the limit's name if there is no
/// quota.
fn span(error: &LimitError, name: &Spanned<String>, raw: &raw::Limit) -> Span {
    fn at<T>(field: &Field<T>) -> Option<Span> {
        field.given().map(|given| given.at)
    }
    let what = match error {
        LimitError::Zero(what) | LimitError::TooLarge { what, .. } => what,
        LimitError::PrecisionAboveWindow { .. } => "precision",
        _ => "",
    };
    let named = match what {
        "window" => at(&raw.window),
        "burst" => Amount::span(&raw.burst),
        "precision" | "number of blocks" => at(&raw.precision),
        "permit_ttl" => at(&raw.permit_ttl),
        _ => None,
    };
    // The default burst is the quota.
    named.or_else(|| Amount::span(&raw.quota)).unwrap_or(name.at)
}
