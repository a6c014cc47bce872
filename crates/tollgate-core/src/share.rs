//! A node's share of a limit, for nodes that cannot reach a common store.

use core::num::NonZeroU32;

use crate::algo::{Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket};
use crate::limit::{Algorithm, Limit};
use crate::reservation::ReservationTerms;

impl Limit {
    /// Returns this limit with the share of one of `nodes` nodes. [`share_of`] divides the quota
    /// and the burst. The overdraft is divided by `nodes`. Everything else stays the same.
    ///
    /// If every node uses its share, all nodes together admit at most the capacity. If the capacity
    /// is smaller than the number of nodes, they admit at most one unit per node.
    #[must_use]
    pub fn share(&self, nodes: NonZeroU32) -> Self {
        let of = |units| share_of(units, nodes);
        let algorithm = match self.algorithm() {
            Algorithm::FixedWindow(whole) => {
                FixedWindow::new(of(whole.quota()), whole.window(), whole.anchor())
                    .map(Algorithm::FixedWindow)
            }
            Algorithm::SlidingWindow(whole) => {
                SlidingWindow::new(of(whole.quota()), whole.window(), whole.precision())
                    .map(Algorithm::SlidingWindow)
            }
            Algorithm::TwoBucket(whole) => {
                TwoBucket::new(of(whole.quota()), whole.window()).map(Algorithm::TwoBucket)
            }
            Algorithm::SlidingLog(whole) => {
                SlidingLog::new(of(whole.quota()), whole.window()).map(Algorithm::SlidingLog)
            }
            Algorithm::TokenBucket(whole) => {
                TokenBucket::new(of(whole.quota()), whole.window(), of(whole.burst()))
                    .map(Algorithm::TokenBucket)
            }
            Algorithm::Concurrency(whole) => {
                Concurrency::new(of(whole.quota()), whole.permit_ttl()).map(Algorithm::Concurrency)
            }
        };
        let hold = *self.reservation_terms();
        let part = ReservationTerms { overdraft: hold.overdraft / u64::from(nodes.get()), ..hold };
        // The constructor cannot fail: a smaller number passes every check that a larger number
        // passes.
        self.clone().with_algorithm(algorithm.unwrap_or_else(|_| *self.algorithm()), part)
    }
}

/// Returns the share of `units` for one of `nodes` nodes: the quotient rounded down, but at least 1
/// if `units` is not 0.
///
/// A share of 0 would make every node refuse all requests of a small limit.
#[must_use]
pub const fn share_of(units: u64, nodes: NonZeroU32) -> u64 {
    let share = units / nodes.get() as u64;
    if share == 0 && units > 0 { 1 } else { share }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algo::Anchor;
    use crate::time::Millis;

    fn nodes(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    #[test]
    fn all_shares_together_are_no_more_than_the_whole_or_one_a_node() {
        for units in 0..200 {
            for count in 1..20 {
                let together = share_of(units, nodes(count)) * u64::from(count);
                assert!(together <= units.max(u64::from(count)), "{units} over {count}");
                assert_eq!(together == 0, units == 0);
            }
        }
    }

    #[test]
    fn a_share_keeps_the_kind_the_window_and_the_name() {
        let (window, precision) = (Millis::from_secs(60), Millis::from_secs(7));
        let pairs = [
            (
                Algorithm::FixedWindow(FixedWindow::new(100, window, Anchor::Calendar).unwrap()),
                Algorithm::FixedWindow(FixedWindow::new(25, window, Anchor::Calendar).unwrap()),
            ),
            (
                Algorithm::SlidingWindow(SlidingWindow::new(7, window, precision).unwrap()),
                Algorithm::SlidingWindow(SlidingWindow::new(1, window, precision).unwrap()),
            ),
            (
                Algorithm::TwoBucket(TwoBucket::new(10, window).unwrap()),
                Algorithm::TwoBucket(TwoBucket::new(2, window).unwrap()),
            ),
            (
                Algorithm::SlidingLog(SlidingLog::new(3, window).unwrap()),
                Algorithm::SlidingLog(SlidingLog::new(1, window).unwrap()),
            ),
            (
                Algorithm::TokenBucket(TokenBucket::new(40, window, 80).unwrap()),
                Algorithm::TokenBucket(TokenBucket::new(10, window, 20).unwrap()),
            ),
            (
                Algorithm::Concurrency(Concurrency::new(100, window).unwrap()),
                Algorithm::Concurrency(Concurrency::new(25, window).unwrap()),
            ),
        ];
        for (whole, part) in pairs {
            let whole = Limit::new("core", whole).unwrap();
            assert_eq!(whole.share(nodes(4)), Limit::new("core", part).unwrap());
            assert_eq!(whole.share(nodes(1)), whole);
        }
    }
}
