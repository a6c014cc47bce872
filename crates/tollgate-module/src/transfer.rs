//! Reads and joins of whole cells, by which subjects move between stores.

use tollgate_core::decide::{assess, join};
use tollgate_core::{Algorithm, Cell, Cost, Limit, Reading, StoredState, Timestamp};

use crate::error::CommandError;
use crate::request::JobCharge;
use crate::step::{Keyspace, Step};
use crate::stored::Stored;

impl<K: Keyspace> Step<'_, K> {
    /// Executes the operation that reads a cell: writes the cell at the location to the reply, or
    /// no cell if it is missing or not valid.
    pub(crate) fn cell(&mut self, charge: &JobCharge, now: Timestamp) -> Result<(), CommandError> {
        let limit = self.rule(charge);
        let bytes = match &self.open(charge.location)?.stored {
            Stored::Cell(cell) if counts(cell, limit, now) => cell.to_bytes(),
            _ => Vec::new(),
        };
        self.reply.cell(&bytes);
        Ok(())
    }

    /// Joins the cell `other` of another store to the cell at the location.
    ///
    /// # Errors
    /// `other` is not a cell of the limit.
    pub(crate) fn join(
        &mut self,
        charge: &JobCharge,
        other: &Cell,
        now: Timestamp,
    ) -> Result<(), CommandError> {
        let limit = self.rule(charge);
        let is_changed = counts(other, limit, now);
        if assess(Some(other), limit, Cost::PEEK, now).found == StoredState::Discarded
            && !is_of(other, limit)
        {
            return Err(CommandError::Invalid("cell for this limit"));
        }
        self.change(charge, now, |cell, limit| {
            let next = join(cell, other.clone(), limit, now);
            (Reading::default(), next, is_changed)
        })?;
        Ok(())
    }
}

/// Returns whether `cell` is a valid state of `limit` that has not ended at `now`.
fn counts(cell: &Cell, limit: &Limit, now: Timestamp) -> bool {
    assess(Some(cell), limit, Cost::PEEK, now).found == StoredState::Present
}

/// Returns whether `cell` is a state of the algorithm of `limit`.
fn is_of(cell: &Cell, limit: &Limit) -> bool {
    match (cell, limit.algorithm()) {
        (Cell::Reserved(reserved), _) => is_of(&reserved.cell, limit),
        (Cell::FixedWindow(_), Algorithm::FixedWindow(_))
        | (Cell::SlidingWindow(_), Algorithm::SlidingWindow(_))
        | (Cell::TwoBucket(_), Algorithm::TwoBucket(_))
        | (Cell::SlidingLog(_), Algorithm::SlidingLog(_))
        | (Cell::TokenBucket(_), Algorithm::TokenBucket(_))
        | (Cell::Concurrency(_), Algorithm::Concurrency(_)) => true,
        _ => false,
    }
}
