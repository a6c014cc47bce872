//! Transfers of the states of subjects to and from another store.

use std::borrow::Cow;

use tollgate_core::decide::{expires_at, join};
use tollgate_core::{
    Cell, CellKey, CellTransfer, Cost, StoreError, StoredState, Timestamp, assess,
};

use super::Memory;
use super::cells::{heap_of, units_of};
use super::overflow::Ceiling;
use super::packed::Retention;
use super::room::Room;
use super::shard::{Shard, retention};
use super::target::Target;

impl CellTransfer for Memory {
    fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        let cell = |cell_key: &CellKey<'_>| {
            let target = self.target_at(cell_key);
            self.lock(target.shard).cell_in_force(now, &target)
        };
        std::future::ready(Ok(cell_keys.iter().map(cell).collect()))
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let join = |(cell_key, cell): &(CellKey<'_>, Cell)| {
            let target = self.target_at(cell_key);
            let mut shard = self.lock(target.shard);
            shard.sweep(now);
            shard.join(now, &target, cell.clone())
        };
        std::future::ready(cells.iter().try_for_each(join))
    }
}

impl Memory {
    fn target_at<'a>(&self, cell_key: &CellKey<'a>) -> Target<'a> {
        self.target(&cell_key.peek())
    }
}

impl Shard {
    fn cell_in_force(&self, now: Timestamp, target: &Target<'_>) -> Option<Cell> {
        let limit = target.charge.limit;
        let cell = match self.table.find(target.key) {
            Some(slot) => self.cell(slot)?,
            None => self.shares.counter(limit.state_digest(), target.key)?.bound(limit, now)?,
        };
        let found = assess(Some(&cell), limit, Cost::PEEK, now).found;
        (found == StoredState::Present).then(|| cell.into_owned())
    }

    /// Joins `cell` with the state in the subject's entry. If there is no room for an entry, raises
    /// the ceiling of the subject's overflow counter to the usage in `cell`.
    ///
    /// # Errors
    /// [`StoreError::Full`] if no entry has room for the joined state, and an overflow counter
    /// cannot replace the entry. An overflow counter cannot replace the entry if the state has
    /// permits or reservations, if the subject has an entry already, or if the limit has no
    /// overflow counters. An error means that nothing was changed.
    fn join(&mut self, now: Timestamp, target: &Target<'_>, cell: Cell) -> Result<(), StoreError> {
        let limit = target.charge.limit;
        let digest = limit.state_digest();
        let slot = self.table.find(target.key);
        let packed = slot.and_then(|slot| self.table.get(slot)).map(|(_, packed)| packed);
        let known = match slot {
            Some(slot) => self.cell(slot),
            None => {
                self.shares.counter(digest, target.key).and_then(|there| there.bound(limit, now))
            }
        };
        let known = known.map(Cow::into_owned);
        let reserved = known.as_ref().filter(|_| slot.is_some()).map_or(0, heap_of);
        let Some(joined) = join(known, cell, limit, now) else { return Ok(()) };
        let again = assess(Some(&joined), limit, Cost::ONE, now).admission;
        let retention = retention(Some(&joined), limit, Cost::ONE, again, now);
        let change = match joined {
            Cell::Reserved(_) => Room::for_reservation(),
            _ => Room::for_change(limit),
        };
        let entry = if slot.is_some() { change } else { Room::ENTRY + change };
        let mut room =
            entry + Room::for_growth(reserved, heap_of(&joined).saturating_sub(reserved));
        if retention == Retention::Pinned {
            room =
                room.pinning(packed.is_some_and(|packed| packed.retention() == Retention::Pinned));
        }
        let share = self.shares.enter(digest);
        if !self.reserve_room(now, share, room, &|key| key == target.key) {
            return self.raise(now, target, &joined, retention);
        }
        // The joined cell contains the previous state, so the previous entry is removed before the
        // joined cell is stored.
        if let Some(slot) = self.table.find(target.key) {
            self.forget(slot);
        }
        self.keep(target, (None, None), Some(joined), retention);
        self.release_room();
        Ok(())
    }

    /// Raises the ceiling of the subject's overflow counter to at least the usage in `cell`.
    fn raise(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        cell: &Cell,
        retention: Retention,
    ) -> Result<(), StoreError> {
        let limit = target.charge.limit;
        let is_new = self.table.find(target.key).is_none() && retention != Retention::Pinned;
        let share = self.shares.enter(limit.state_digest());
        let counter = self.shares.open_counter(share, target.key).filter(|_| is_new);
        let Some(counter) = counter else {
            self.counts.full += 1;
            return Err(StoreError::Full);
        };
        let ceiling = Ceiling { used: units_of(cell), until: expires_at(cell, limit) };
        counter.ceiling.raise(ceiling, now);
        Ok(())
    }
}
