//! Random limits for traces. Most limits are small, so refusals and expiries happen often. Some
//! limits have numbers at the bounds.

use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Algorithm, Limit, LimitError, MAX_EXACT, Millis, OnExpiry, Refusals, ReservationTerms,
};

use crate::random::Random;
use crate::schedule::UNEVEN_MILLIS;

/// Returns a random limit with the algorithm of number `kind`, named `name`. The numbers 0 to 7
/// select eight variants. Each of the three anchors of a fixed window is a separate variant, and
/// scheduled windows are the last variant.
///
/// # Panics
/// Panics if `name` is not a valid limit name.
#[must_use]
pub fn random_limit(random: &mut Random, kind: u64, name: &str) -> Limit {
    let algorithm = random_algorithm(random, kind).expect("the numbers fit");
    let limit = Limit::new(name, algorithm).expect("a name");
    let in_flight = matches!(algorithm, Algorithm::Concurrency(_));
    if !in_flight && random.chance(25) {
        return limit.with_refusals(Refusals::Counted).expect("not in flight");
    }
    limit
}

/// Returns `limit` with reservation terms that take effect often. Returns a concurrency limit
/// unchanged, because a concurrency limit has no reservation terms.
pub(super) fn with_random_hold(random: &mut Random, limit: Limit) -> Limit {
    let hold = ReservationTerms {
        max: Millis::new(random.one_of(&[1, 7, 60, 1_000, 50_000])),
        at_most: random.one_of(&[1, 3, 10, MAX_EXACT, MAX_EXACT]),
        on_expiry: random.one_of(&[OnExpiry::Release, OnExpiry::Release, OnExpiry::Charge]),
        overdraft: random.one_of(&[0, 1, 4]),
    };
    let without_overdraft = ReservationTerms { overdraft: 0, ..hold };
    let overdrawn = limit.clone().with_reservation_terms(hold);
    overdrawn.or_else(|_| limit.clone().with_reservation_terms(without_overdraft)).unwrap_or(limit)
}

fn random_algorithm(random: &mut Random, kind: u64) -> Result<Algorithm, LimitError> {
    let window = Millis::new(random.one_of(&[1, 2, 3, 7, 10, 60, 100, 1_000, 1_001]));
    let small = random.one_of(&[1, 2, 3, 5, 10, 60]);
    let any = random.one_of(&[small, small, small, MAX_EXACT, MAX_EXACT - 1]);
    Ok(match kind % 8 {
        0 => Algorithm::FixedWindow(FixedWindow::new(any, window, Anchor::FirstRequest)?),
        1 => Algorithm::FixedWindow(FixedWindow::new(any, window, Anchor::Calendar)?),
        2 => {
            let precision = Millis::new(random.within(1..=window.get()).max(window.get() / 50));
            Algorithm::SlidingWindow(SlidingWindow::new(any, window, precision)?)
        }
        3 => {
            let largest = MAX_EXACT / 2 / window.get();
            Algorithm::TwoBucket(TwoBucket::new(any.min(largest), window)?)
        }
        4 => Algorithm::SlidingLog(SlidingLog::new(small, window)?),
        5 => {
            let largest = MAX_EXACT / window.get();
            let burst = random.one_of(&[1, 2, 3, 10, largest, largest - 1]);
            Algorithm::TokenBucket(TokenBucket::new(any, window, burst)?)
        }
        6 => Algorithm::Concurrency(Concurrency::new(small, window)?),
        _ => Algorithm::FixedWindow(FixedWindow::scheduled(any, UNEVEN_MILLIS)?),
    })
}
