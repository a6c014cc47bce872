//! One call over several charges: all the shards it touches are locked together.

use parking_lot::MutexGuard;
use smallvec::SmallVec;
use tollgate_core::{Reading, Readings, StoreError, Timestamp};

use super::Memory;
use super::fingerprint::Fingerprint;
use super::shard::{CallOutcome, Shard, Target};

/// Charges of one call that are decided without an allocation.
pub(super) const INLINE: usize = 4;

/// The shards of one call.
struct Locked<'a> {
    /// In rising order, each once: two calls never wait for each other in a circle.
    shards: SmallVec<[(usize, MutexGuard<'a, Shard>); INLINE]>,
    count: usize,
}

impl<'a> Locked<'a> {
    fn new(memory: &'a Memory, targets: &[Target<'_>]) -> Self {
        let count = memory.shards.len();
        let mut indices: SmallVec<[usize; INLINE]> =
            targets.iter().map(|target| target.key.shard(count)).collect();
        indices.sort_unstable();
        indices.dedup();
        let shards = indices.into_iter().map(|index| (index, memory.lock(index))).collect();
        Self { shards, count }
    }

    /// The shard of `key`, which is one of the call's.
    fn of(&mut self, key: Fingerprint) -> &mut Shard {
        let index = key.shard(self.count);
        let position = self.shards.partition_point(|(other, _)| *other < index);
        &mut self.shards[position].1
    }
}

/// Carries out `targets` as one atomic step.
pub(super) fn apply(
    memory: &Memory,
    now: Timestamp,
    targets: &[Target<'_>],
) -> Result<Readings, StoreError> {
    let mut locked = Locked::new(memory, targets);
    for (_, shard) in &mut locked.shards {
        shard.sweep(now);
    }
    let admitted = targets.iter().all(|target| locked.of(target.key).admits(now, target));
    let outcome = if admitted { CallOutcome::Admitted } else { CallOutcome::Refused };
    let reserved_room = reserve_room(&mut locked, now, targets, outcome);
    let readings = reserved_room.map(|()| {
        let execute = |target: &Target<'_>| locked.of(target.key).execute(now, target, outcome);
        targets.iter().map(execute).collect()
    });
    for (_, shard) in &mut locked.shards {
        shard.release_room();
    }
    readings
}

impl Shard {
    /// What [`apply`] does, for a call of one charge.
    #[cold]
    pub(super) fn apply_alone(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
    ) -> Result<Reading, StoreError> {
        let outcome =
            if self.admits(now, target) { CallOutcome::Admitted } else { CallOutcome::Refused };
        let room = self.room_for(now, target, outcome);
        let pinned = |key| target.key == key || target.refund == Some(key);
        self.reserve_room(now, room, &pinned)?;
        let reading = self.execute(now, target, outcome);
        self.release_room();
        Ok(reading)
    }
}

/// Makes room for everything the call adds, before it changes anything.
fn reserve_room(
    locked: &mut Locked<'_>,
    now: Timestamp,
    targets: &[Target<'_>],
    outcome: CallOutcome,
) -> Result<(), StoreError> {
    let pinned = |key| targets.iter().any(|target| target.key == key || target.refund == Some(key));
    targets.iter().try_for_each(|target| {
        let shard = locked.of(target.key);
        let room = shard.room_for(now, target, outcome);
        shard.reserve_room(now, room, &pinned)
    })
}
