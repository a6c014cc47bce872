//! Reservations: units that are reserved until the actual cost is known.

use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::limit_error::LimitError;
use crate::time::{MAX_EXACT, MAX_WINDOW, Millis, Timestamp};

/// The largest number of reservations that one subject can have on one limit at a time. It bounds
/// the size of the subject's state.
pub const MAX_RESERVATIONS: usize = 1_000;

/// The default of [`ReservationTerms::max`], the longest time that units are reserved.
pub const DEFAULT_RESERVATION_MAX: Millis = Millis::from_secs(300);

/// What happens to reserved units when their reservation expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExpiry {
    /// The units of the reservation return to the window that they were charged on.
    #[default]
    Release,
    /// The units of the reservation stay used.
    Charge,
}

/// The terms of reservations on a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationTerms {
    /// The longest time from the creation of a reservation to its expiry.
    pub max: Millis,
    /// The largest number of units that all reservations of one subject can reserve together.
    pub at_most: u64,
    /// What happens to reserved units when their reservation expires.
    pub on_expiry: OnExpiry,
    /// The largest number of units beyond the capacity that a settlement can charge if the cost is
    /// higher than the reservation.
    pub overdraft: u64,
}

/// A reservation as it is stored in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The id of the charge that made the reservation.
    pub id: ChargeId,
    /// The reserved units, never zero. They count as used at `position`.
    pub units: u64,
    /// The position (window, block or bucket) at which the units were counted.
    pub position: ChargePosition,
    /// The expiry, exclusive.
    pub until: Timestamp,
    /// What happens to the units when the reservation expires.
    pub on_expiry: OnExpiry,
}

impl Default for ReservationTerms {
    /// Returns the default terms. A reservation lasts for at most five minutes. Reservations can
    /// reserve all units of the capacity, and release them when they expire. There is no overdraft.
    fn default() -> Self {
        let (on_expiry, overdraft) = (OnExpiry::Release, 0);
        Self { max: DEFAULT_RESERVATION_MAX, at_most: MAX_EXACT, on_expiry, overdraft }
    }
}

impl ReservationTerms {
    /// Returns an error if a number is out of the range that `capacity`, the capacity of the limit,
    /// allows.
    pub(crate) fn check(&self, capacity: u64) -> Result<(), LimitError> {
        let in_range = |what, given: u64, largest, because| {
            if given > largest {
                return Err(LimitError::TooLarge { what, given, largest, because });
            }
            Ok(())
        };
        if self.max == Millis::ZERO {
            return Err(LimitError::Zero("longest reservation"));
        }
        if self.at_most == 0 {
            return Err(LimitError::Zero("number of reserved units"));
        }
        let years = "ten years in milliseconds";
        in_range("longest reservation", self.max.get(), MAX_WINDOW.get(), years)?;
        let exact = "the largest integer that every store holds exactly";
        in_range("number of reserved units", self.at_most, MAX_EXACT, exact)?;
        let together = "so that capacity and overdraft together stay below 2^53";
        in_range("overdraft", self.overdraft, MAX_EXACT - capacity, together)
    }

    /// Returns the expiry of a reservation that is made at `now`: the requested expiry `until`, but
    /// at most `max` after `now`.
    #[must_use]
    pub fn end(&self, until: Timestamp, now: Timestamp) -> Timestamp {
        until.min(now.after(self.max))
    }
}
