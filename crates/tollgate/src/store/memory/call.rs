//! One call over several charges: all the shards it touches are locked together.

use parking_lot::MutexGuard;
use smallvec::SmallVec;
use tollgate_core::{Reading, Readings, StoreError, Timestamp};

use super::Memory;
use super::fingerprint::Fingerprint;
use super::shard::{Ruling, Shard, Target};

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
    let ruling = if admitted { Ruling::Admitted } else { Ruling::Refused };
    let promised = promise(&mut locked, now, targets, ruling);
    let readings = promised.map(|()| {
        let carry_out = |target: &Target<'_>| locked.of(target.key).carry_out(now, target, ruling);
        targets.iter().map(carry_out).collect()
    });
    for (_, shard) in &mut locked.shards {
        shard.forget_promises();
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
        let ruling = if self.admits(now, target) { Ruling::Admitted } else { Ruling::Refused };
        let room = self.room_for(now, target, ruling);
        let spared = |key| target.key == key || target.refund == Some(key);
        self.promise(now, room, &spared)?;
        let reading = self.carry_out(now, target, ruling);
        self.forget_promises();
        Ok(reading)
    }
}

/// Makes room for everything the call adds, before it changes anything.
fn promise(
    locked: &mut Locked<'_>,
    now: Timestamp,
    targets: &[Target<'_>],
    ruling: Ruling,
) -> Result<(), StoreError> {
    let spared = |key| targets.iter().any(|target| target.key == key || target.refund == Some(key));
    targets.iter().try_for_each(|target| {
        let shard = locked.of(target.key);
        let room = shard.room_for(now, target, ruling);
        shard.promise(now, room, &spared)
    })
}
