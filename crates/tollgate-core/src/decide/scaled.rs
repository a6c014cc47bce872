//! The initial state of a limit that takes over the usage of the limit that it replaces, in
//! proportion to the capacities.

use super::{Cell, assess, decide};
use crate::charge::Operation;
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::limit::{Algorithm, Limit};
use crate::reading::StoredState;
use crate::time::{MAX_EXACT, Timestamp};

impl Limit {
    /// Returns the initial cell of this limit, computed from `cell`, the state of `predecessor`.
    /// The new cell uses the same share of its capacity as `cell` did, rounded up to whole units.
    /// Returns `None` if nothing was used or `cell` is not valid. Also returns `None` if one of the
    /// limits counts requests in flight, because those requests keep their permits in the old
    /// counters.
    ///
    /// A fixed window ends when the old window would have ended, but never later than a window that
    /// opens now. For other algorithms, the units count as charged at `now`.
    #[must_use]
    pub fn scaled(&self, cell: &Cell, predecessor: &Self, now: Timestamp) -> Option<Cell> {
        let in_flight = |limit: &Self| matches!(limit.algorithm(), Algorithm::Concurrency(_));
        let reading = assess(Some(cell), predecessor, Cost::PEEK, now);
        if in_flight(self) || in_flight(predecessor) || reading.found != StoredState::Present {
            return None;
        }
        let used = part(reading.used, predecessor.capacity(), self.capacity());
        let cost = Cost::new(used).filter(|cost| *cost != Cost::PEEK)?;
        let take = Operation::Charge { cost, id: ChargeId::default() };
        let mut cell = decide(None, self, take, now).1?;
        if let Cell::FixedWindow(window) = &mut cell {
            window.resets_at = window.resets_at.min(reading.full_reset_at);
        }
        Some(cell)
    }
}

/// Returns the part of `to` that corresponds to the part `used` of `from`: `used × to / from`,
/// rounded up, and at most `to`.
fn part(used: u64, from: u64, to: u64) -> u64 {
    let scaled = (u128::from(used) * u128::from(to)).div_ceil(u128::from(from.max(1)));
    u64::try_from(scaled).unwrap_or(MAX_EXACT).min(to)
}
