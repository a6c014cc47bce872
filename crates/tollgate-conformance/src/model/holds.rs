//! Reservations that are not settled.

use tollgate_core::{ChargeId, MAX_RESERVATIONS, OnExpiry};

/// The reservations of one limit and subject, in the order of their ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds(Vec<Hold>);

#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) id: ChargeId,
    pub(super) units: u64,
    pub(super) until: u64,
    pub(super) on_expiry: OnExpiry,
}

impl Holds {
    pub(super) fn add(&mut self, hold: Hold) {
        self.0.push(hold);
        self.0.sort_by_key(|hold| hold.until);
    }

    pub(super) fn take(&mut self, id: ChargeId) -> Option<Hold> {
        let index = self.0.iter().position(|hold| hold.id == id)?;
        Some(self.0.remove(index))
    }

    /// Removes and returns the reservations that have expired by `at`.
    pub(super) fn take_over(&mut self, at: u64) -> Vec<Hold> {
        let (over, held) = std::mem::take(&mut self.0).into_iter().partition(|it| it.until <= at);
        self.0 = held;
        over
    }

    pub(super) fn units(&self) -> u64 {
        self.0.iter().map(|hold| hold.units).sum()
    }

    pub(super) fn have_room(&self, units: u64, at_most: u64) -> bool {
        self.units() + units <= at_most && self.0.len() < MAX_RESERVATIONS
    }

    /// Returns when the first of the reservations expires.
    pub(super) fn first_end(&self) -> Option<u64> {
        self.0.first().map(|hold| hold.until)
    }

    /// Returns when the last of the reservations expires.
    pub(super) fn last_end(&self) -> u64 {
        self.0.last().map_or(0, |hold| hold.until)
    }
}
