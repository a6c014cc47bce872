//! Reservations: units that are held for a time, until it is known what they really cost.

use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::limit_error::LimitError;
use crate::time::{MAX_EXACT, MAX_WINDOW, Millis, Timestamp};

/// The most reservations that one subject has of one limit at a time: what its state can grow to.
pub const MAX_RESERVATIONS: usize = 1_000;

/// The longest time that units are held unless a limit says otherwise.
pub const DEFAULT_RESERVATION_MAX: Millis = Millis::from_secs(300);

/// What becomes of a reservation that nobody settled in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExpiry {
    /// Its units are given back to where they were taken from, as of its end.
    #[default]
    Release,
    /// Its units stay used.
    Charge,
}

/// How a limit may be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationTerms {
    /// The longest time from the asking to a reservation's end.
    pub max: Millis,
    /// Units that all reservations of a subject hold together, at most.
    pub at_most: u64,
    /// What becomes of a reservation that runs out.
    pub on_expiry: OnExpiry,
    /// Units that a settlement above its reservation may use beyond the capacity.
    pub overdraft: u64,
}

/// One reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The charge that made it.
    pub id: ChargeId,
    /// Units, never zero. They count as used where `position` says.
    pub units: u64,
    /// Where they were put.
    pub position: ChargePosition,
    /// The moment at which it runs out: itself no longer held.
    pub until: Timestamp,
    /// What becomes of it then.
    pub on_expiry: OnExpiry,
}

impl Default for ReservationTerms {
    /// For at most five minutes, as many units as the limit has; released, and no overdraft.
    fn default() -> Self {
        let (on_expiry, overdraft) = (OnExpiry::Release, 0);
        Self { max: DEFAULT_RESERVATION_MAX, at_most: MAX_EXACT, on_expiry, overdraft }
    }
}

impl ReservationTerms {
    /// Checks the numbers beside a limit of this `capacity`.
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
        let years = "milliseconds in ten years";
        in_range("longest reservation", self.max.get(), MAX_WINDOW.get(), years)?;
        let exact = "the largest integer that every store holds exactly";
        in_range("number of reserved units", self.at_most, MAX_EXACT, exact)?;
        let together = "so that capacity and overdraft together stay below 2^53";
        in_range("overdraft", self.overdraft, MAX_EXACT - capacity, together)
    }

    /// The end of a reservation that is asked for at `now` and wanted `until` then.
    #[must_use]
    pub fn end(&self, until: Timestamp, now: Timestamp) -> Timestamp {
        until.min(now.after(self.max))
    }
}

impl Reservation {
    /// Two accounts of one reservation as one: until the later of its ends, and released only if
    /// both say so.
    pub(crate) fn joined(&self, other: Self) -> Self {
        let on_expiry =
            if self.on_expiry == other.on_expiry { self.on_expiry } else { OnExpiry::Charge };
        let (units, until) = (self.units.min(other.units), self.until.max(other.until));
        Self { units, until, on_expiry, ..*self }
    }
}
