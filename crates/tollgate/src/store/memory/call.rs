//! One call with several charges. The call locks the shards of all charges together.

use smallvec::SmallVec;
use tollgate_core::{DecisionSource, Reading, Timestamp};

use super::Memory;
use super::in_place::InPlace;
use super::shard::Shard;
use super::sync::MutexGuard;
use super::target::{CallOutcome, Destination, Target};

/// The most charges of one call that are decided without an allocation.
pub(super) const INLINE: usize = 6;

/// The locked shards of one call.
struct Locked<'a> {
    /// Each shard once, in rising order. All calls lock shards in this order, so calls cannot
    /// deadlock.
    shards: SmallVec<[(usize, MutexGuard<'a, Shard>); INLINE]>,
}

impl<'a> Locked<'a> {
    fn new(memory: &'a Memory, targets: &[Target<'_>]) -> Self {
        let mut indices: SmallVec<[usize; INLINE]> =
            targets.iter().map(|target| target.shard).collect();
        indices.sort_unstable();
        indices.dedup();
        let shards = indices.into_iter().map(|index| (index, memory.lock(index))).collect();
        Self { shards }
    }

    fn one(index: usize, shard: MutexGuard<'a, Shard>) -> Self {
        Self { shards: SmallVec::from_iter([(index, shard)]) }
    }

    /// Returns the shard of `target`, which must be one of the locked shards.
    fn of(&mut self, target: &Target<'_>) -> &mut Shard {
        let position = self.shards.partition_point(|(other, _)| *other < target.shard);
        &mut self.shards[position].1
    }

    fn release_room(&mut self) {
        self.shards.iter_mut().for_each(|(_, shard)| shard.release_room());
    }

    fn took_overflow(&mut self) -> bool {
        self.shards.iter_mut().fold(false, |took, (_, shard)| shard.took_overflow() || took)
    }
}

/// The planned changes of a call's entries, one for each charge. An element is `None` if the charge
/// does not fit, or is not decided by its entry alone.
type Plan = SmallVec<[Option<InPlace>; INLINE]>;

/// Applies the operations of all `targets` atomically.
pub(super) fn apply(
    memory: &Memory,
    now: Timestamp,
    targets: &[Target<'_>],
    readings: &mut Vec<Reading>,
) -> DecisionSource {
    let mut indices = targets.iter().map(|target| target.shard);
    let first = indices.next().unwrap_or_default();
    if !indices.all(|index| index == first) {
        let mut locked = Locked::new(memory, targets);
        for (_, shard) in &mut locked.shards {
            shard.sweep(now);
        }
        return apply_locked(locked, now, targets, readings);
    }
    // The charges of a request usually have one subject, and are therefore in one shard.
    let mut shard = memory.lock(first);
    shard.sweep(now);
    if shard.charge_together(now, targets, readings) {
        return DecisionSource::Store;
    }
    apply_locked(Locked::one(first, shard), now, targets, readings)
}

fn apply_locked(
    mut locked: Locked<'_>,
    now: Timestamp,
    targets: &[Target<'_>],
    readings: &mut Vec<Reading>,
) -> DecisionSource {
    let mut plan = plan_in_place(&mut locked, now, targets);
    let admitted = targets
        .iter()
        .zip(&plan)
        .all(|(target, planned)| planned.is_some() || locked.of(target).admits(now, target));
    let mut outcome = if admitted { CallOutcome::Admitted } else { CallOutcome::Refused };
    if outcome == CallOutcome::Refused {
        plan.fill(None);
    }
    let mut destinations = find_destinations(&mut locked, now, (targets, &plan), outcome);
    if outcome == CallOutcome::Admitted && lacks_room(targets, &destinations) {
        outcome = CallOutcome::Refused;
        plan.fill(None);
        locked.release_room();
        let wanted = destinations;
        destinations = find_destinations(&mut locked, now, (targets, &plan), outcome);
        // The charges that found no room caused the refusal of the call, and no counter records
        // them.
        for (destination, wanted) in destinations.iter_mut().zip(wanted) {
            if wanted == Destination::None {
                *destination = Destination::None;
            }
        }
    }
    let places = plan.iter().zip(&destinations);
    readings.extend(targets.iter().zip(places).map(|(target, (planned, destination))| {
        let shard = locked.of(target);
        match planned {
            Some(planned) => shard.set_in_place(target.key, planned),
            None => shard.execute(now, target, outcome, *destination),
        }
    }));
    locked.release_room();
    if locked.took_overflow() { DecisionSource::Overflow } else { DecisionSource::Store }
}

/// Returns the change of the entry for each charge, and does not apply the changes. An element is
/// `None` if the charge does not fit, changes more than its entry, or has the same entry as another
/// charge of the call.
fn plan_in_place(locked: &mut Locked<'_>, now: Timestamp, targets: &[Target<'_>]) -> Plan {
    let planned = |target: &Target<'_>| {
        // If two charges have the same entry, the second depends on the first, so neither is
        // planned.
        let is_alone = targets.iter().filter(|other| other.key == target.key).count() == 1;
        is_alone.then(|| locked.of(target).plan_in_place(now, target)).flatten()
    };
    targets.iter().map(planned).collect()
}

impl Shard {
    /// Applies a call with one charge, with the same result as [`apply`].
    #[cold]
    pub(super) fn apply_alone(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
    ) -> (Reading, DecisionSource) {
        let mut outcome =
            if self.admits(now, target) { CallOutcome::Admitted } else { CallOutcome::Refused };
        let pinned = |key| target.key == key || target.refund == Some(key);
        let destination = self.destination(now, target, outcome, &pinned);
        if destination == Destination::None {
            outcome = CallOutcome::Refused;
        }
        let reading = self.execute(now, target, outcome, destination);
        self.release_room();
        let source =
            if self.took_overflow() { DecisionSource::Overflow } else { DecisionSource::Store };
        (reading, source)
    }

    /// Returns whether an overflow counter was used since the last call of this function.
    fn took_overflow(&mut self) -> bool {
        let took = std::mem::take(&mut self.overflowed);
        self.counts.overflow += u64::from(took);
        took
    }
}

/// Returns whether at least one charge of the call found no room, neither in an entry nor in an
/// overflow counter. `destinations` states where each of `targets` is counted.
fn lacks_room(targets: &[Target<'_>], destinations: &[Destination]) -> bool {
    let lacks = |(target, destination): (&Target<'_>, &Destination)| {
        *destination == Destination::None && target.charge.operation.as_charge().is_some()
    };
    targets.iter().zip(destinations).any(lacks)
}

/// Finds where each target is counted, and reserves the room that it needs there, before the call
/// changes anything. The result has one [`Destination`] for each target.
fn find_destinations(
    locked: &mut Locked<'_>,
    now: Timestamp,
    (targets, plan): (&[Target<'_>], &Plan),
    outcome: CallOutcome,
) -> SmallVec<[Destination; INLINE]> {
    let pinned = |key| targets.iter().any(|target| target.key == key || target.refund == Some(key));
    let destination = |(target, planned): (&Target<'_>, &Option<InPlace>)| match planned {
        Some(_) => Destination::Entry,
        None => locked.of(target).destination(now, target, outcome, &pinned),
    };
    targets.iter().zip(plan).map(destination).collect()
}
