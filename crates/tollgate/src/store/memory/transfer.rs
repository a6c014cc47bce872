//! CellTransfer that are read out, and taken in from another store.

use tollgate_core::decide::join;
use tollgate_core::{
    Cell, CellKey, CellTransfer, Charge, Cost, Operation, StoreError, StoredState, Timestamp,
    assess,
};

use super::Memory;
use super::cells::heap_of;
use super::room::Room;
use super::shard::{Shard, Target, retention};

impl CellTransfer for Memory {
    fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        let cell = |place: &CellKey<'_>| {
            let target = self.target_at(place);
            self.lock(target.key.shard(self.shards.len())).cell_in_force(now, &target)
        };
        std::future::ready(Ok(places.iter().map(cell).collect()))
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let join = |(place, cell): &(CellKey<'_>, Cell)| {
            let target = self.target_at(place);
            let mut shard = self.lock(target.key.shard(self.shards.len()));
            shard.sweep(now);
            shard.join(now, &target, cell.clone())
        };
        std::future::ready(cells.iter().try_for_each(join))
    }
}

impl Memory {
    fn target_at<'a>(&self, place: &CellKey<'a>) -> Target<'a> {
        let operation = Operation::Peek { cost: Cost::PEEK };
        self.target(&Charge { limit: place.limit, subject: place.subject, operation })
    }
}

impl Shard {
    fn cell_in_force(&self, now: Timestamp, target: &Target<'_>) -> Option<Cell> {
        let cell = self.cell(self.table.find(target.key)?)?;
        let found = assess(Some(&cell), target.charge.limit, Cost::PEEK, now).found;
        (found == StoredState::Present).then(|| cell.into_owned())
    }

    /// # Errors
    /// [`StoreError::Full`] if there is no room for what is more than before; then nothing changed.
    fn join(&mut self, now: Timestamp, target: &Target<'_>, cell: Cell) -> Result<(), StoreError> {
        let limit = target.charge.limit;
        let slot = self.table.find(target.key);
        let known = slot.and_then(|slot| self.cell(slot)).map(|known| known.into_owned());
        let reserved = known.as_ref().map_or(0, heap_of);
        let Some(joined) = join(known, cell, limit, now) else { return Ok(()) };
        let change = match joined {
            Cell::Reserved(_) => Room::for_reservation(),
            _ => Room::for_change(limit),
        };
        let entry = if slot.is_some() { change } else { Room::ENTRY + change };
        let room = entry + Room::for_growth(heap_of(&joined).saturating_sub(reserved));
        self.reserve_room(now, room, &|key| key == target.key)?;
        let again = assess(Some(&joined), limit, Cost::ONE, now).admission;
        let retention = retention(Some(&joined), limit, Cost::ONE, again, now);
        // It is read, joined and put back whole: what lies there now goes first.
        if let Some(slot) = self.table.find(target.key) {
            self.forget(slot);
        }
        self.keep(target, None, Some(joined), retention);
        self.release_room();
        Ok(())
    }
}
