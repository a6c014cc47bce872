//! The mode of a limit: the store decides each charge, or nodes decide charges with quota leases.

use super::{Algorithm, Limit, Refusals};
use crate::charge_position::ChargePosition;
use crate::limit_error::LimitError;
use crate::time::{Millis, Timestamp};

/// The way in which charges on a limit are decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitMode {
    /// The store decides each charge separately.
    #[default]
    Exact,
    /// Nodes take units from the store in advance with a quota lease, and decide charges with these
    /// units. This mode needs a store wrapper that supports quota leases. Without such a wrapper,
    /// the store decides each charge as with [`Exact`](Self::Exact).
    Leased,
}

/// The time span in which a node can spend the units of a quota lease. The units were charged in
/// advance at one [`ChargePosition`]. Within the span, the state is the same as if each unit had
/// been charged when it is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseSpan {
    /// The start of the span. A decision at an earlier time treats state with this position as
    /// missing.
    pub from: Timestamp,
    /// The end of the span, exclusive. From this time on, charges are counted at another
    /// [`ChargePosition`], in a later window or block.
    pub until: Timestamp,
}

impl LeaseSpan {
    /// Returns whether `now` is in the span.
    #[must_use]
    pub fn includes(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }
}

impl Limit {
    /// Sets the way in which charges are decided.
    ///
    /// A limit can be leased if the exact time of a charge within its window or block does not
    /// affect its state. The state is then the same whenever a unit is used within that window or
    /// block.
    ///
    /// # Errors
    /// [`LimitError::NotLeasable`] for a token bucket, which would refill before the units are
    /// used; for a sliding log and a concurrency limit, which store each charge separately; and for
    /// a two-bucket estimate, which changes every millisecond. [`LimitError::LeasedCountsRefusals`]
    /// for a limit that counts refusals, because the store must receive every refusal.
    pub fn with_mode(mut self, mode: LimitMode) -> Result<Self, LimitError> {
        if mode == LimitMode::Leased {
            if let Some(because) = self.algorithm.not_leasable() {
                return Err(LimitError::NotLeasable { because });
            }
            if self.refusals == Refusals::Counted {
                return Err(LimitError::LeasedCountsRefusals);
            }
        }
        self.mode = mode;
        Ok(self)
    }

    /// Returns the way in which charges are decided: by the store, or by nodes with quota leases.
    #[inline]
    #[must_use]
    pub const fn mode(&self) -> LimitMode {
        self.mode
    }

    /// Returns the time span in which units that were charged at `position` can be used. Returns
    /// `None` for a limit that cannot be leased.
    #[must_use]
    pub fn lease_span(&self, position: ChargePosition) -> Option<LeaseSpan> {
        let (opens, until) = match &self.algorithm {
            Algorithm::FixedWindow(limit) => (
                position.0.saturating_sub(limit.window().get()),
                Timestamp::from_millis(position.0),
            ),
            Algorithm::SlidingWindow(limit) => {
                let opens = position.0.saturating_mul(limit.precision().get());
                (opens, Timestamp::from_millis(opens).after(limit.precision()))
            }
            _ => return None,
        };
        let from = opens.saturating_sub(self.skew_tolerance().get());
        Some(LeaseSpan { from: Timestamp::from_millis(from), until })
    }

    /// Returns the longest time for which a quota lease can be used: the length of the window, or
    /// of one block of a sliding window. Returns `None` for a limit that cannot be leased.
    #[must_use]
    pub const fn longest_lease(&self) -> Option<Millis> {
        match &self.algorithm {
            Algorithm::FixedWindow(limit) => Some(limit.window()),
            Algorithm::SlidingWindow(limit) => Some(limit.precision()),
            _ => None,
        }
    }
}

impl Algorithm {
    /// Returns the reason why units of the limit cannot be charged in advance. Returns `None` if
    /// they can.
    pub(super) const fn not_leasable(&self) -> Option<&'static str> {
        match self {
            Self::FixedWindow(_) | Self::SlidingWindow(_) => None,
            Self::TokenBucket(_) => Some(
                "a token_bucket refills while units wait to be used, and would admit more than its burst",
            ),
            Self::SlidingLog(_) => Some("a sliding_log stores each charge separately"),
            Self::TwoBucket(_) => Some("the usage of a two_bucket changes every millisecond"),
            Self::Concurrency(_) => Some("a concurrency limit stores each permit separately"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algo::{
        Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
    };
    use crate::charge::Operation;
    use crate::charge_id::ChargeId;
    use crate::cost::Cost;
    use crate::decide::decide;

    const MINUTE: Millis = Millis::from_secs(60);

    fn limit(algorithm: Algorithm) -> Limit {
        Limit::new("core", algorithm).unwrap()
    }

    #[test]
    fn only_windows_can_be_leased() {
        let fixed = Algorithm::FixedWindow(FixedWindow::new(5, MINUTE, Anchor::Calendar).unwrap());
        let sliding =
            Algorithm::SlidingWindow(SlidingWindow::new(5, MINUTE, Millis::from_secs(1)).unwrap());
        for algorithm in [fixed, sliding] {
            let leased = limit(algorithm).with_mode(LimitMode::Leased).unwrap();
            assert_eq!(leased.mode(), LimitMode::Leased);
            assert_eq!(leased.with_quota(7, None).unwrap().mode(), LimitMode::Leased);
            let counted = limit(algorithm).with_refusals(Refusals::Counted).unwrap();
            let refused = counted.with_mode(LimitMode::Leased);
            assert_eq!(refused, Err(LimitError::LeasedCountsRefusals));
        }
        for algorithm in [
            Algorithm::TwoBucket(TwoBucket::new(5, MINUTE).unwrap()),
            Algorithm::SlidingLog(SlidingLog::new(5, MINUTE).unwrap()),
            Algorithm::TokenBucket(TokenBucket::new(5, MINUTE, 5).unwrap()),
            Algorithm::Concurrency(Concurrency::new(5, MINUTE).unwrap()),
        ] {
            let refused = limit(algorithm).with_mode(LimitMode::Leased);
            assert!(matches!(refused, Err(LimitError::NotLeasable { .. })), "{algorithm:?}");
            assert!(limit(algorithm).lease_span(ChargePosition(7)).is_none());
            assert!(limit(algorithm).with_mode(LimitMode::Exact).is_ok());
        }
    }

    /// Checks that a charge leads to the same state at every time within one window or block.
    #[test]
    fn a_unit_is_put_to_the_same_place_at_every_moment_of_its_span() {
        let start = Timestamp::from_millis(1_700_000_000_123);
        let take = |id| Operation::Charge { cost: Cost::ONE, id: ChargeId(id) };
        for algorithm in [
            Algorithm::FixedWindow(FixedWindow::new(5, MINUTE, Anchor::FirstRequest).unwrap()),
            Algorithm::FixedWindow(FixedWindow::new(5, MINUTE, Anchor::Calendar).unwrap()),
            Algorithm::SlidingWindow(SlidingWindow::new(5, MINUTE, Millis::new(700)).unwrap()),
        ] {
            let limit = limit(algorithm);
            let (reading, cell) = decide(None, &limit, take(1), start);
            let span = limit.lease_span(reading.position).unwrap();
            assert!(span.includes(start));
            let millis = Timestamp::as_millis;
            for (now, is_in) in [
                (millis(span.from) - 1, false),
                (millis(span.from), true),
                (millis(start) - 1, true),
                (millis(start) + 1, true),
                (millis(span.until) - 1, true),
                (millis(span.until), false),
            ] {
                let now = Timestamp::from_millis(now);
                assert_eq!(span.includes(now), is_in, "{algorithm:?} at {now:?}");
                let (again, _) = decide(cell.clone(), &limit, take(2), now);
                assert_eq!(again.position == reading.position, is_in, "{algorithm:?} at {now:?}");
            }
        }
    }
}
