//! Charges that wait until the recorded state is replayed to their epoch.

use std::sync::atomic::Ordering;

use tollgate_core::{Charge, Millis, Readings, StoreError, Timestamp};

use super::pass::{ReplayPass, join_missing};
use super::{FailoverReplay, MAX_OUTAGE};
use crate::atomic::PartitionedEpochs;

impl<S> FailoverReplay<S> {
    /// Applies `charges` at `partition`. If the partition's epoch lacks the recorded state, replays
    /// the state first.
    pub(super) async fn apply_replayed(
        &self,
        partitions: &impl PartitionedEpochs,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        if charges.iter().all(|charge| charge.operation.is_read_only()) {
            return partitions.apply_at(partition, now, charges).await;
        }
        let (mut epoch, mut answer) = self.charge_at(partitions, partition, now, charges).await;
        if matches!(answer, Err(StoreError::Unavailable)) && epoch != partitions.epoch_at(partition)
        {
            // The charges were not sent, because another epoch began while the charges waited.
            (epoch, answer) = Box::pin(self.charge_at(partitions, partition, now, charges)).await;
        }
        if answer.is_ok() && epoch != partitions.epoch_at(partition) {
            // This late answer belongs to an old epoch, and the replay to the new epoch may have
            // started without the charges of this answer.
            let known = self.log.known_of(now, charges);
            // The decision is final, even if the state cannot be joined.
            let _ = Box::pin(join_missing(partitions, now, &known, &self.counters)).await;
        }
        answer
    }

    /// If charges at `partition` are paused, replays the recorded state to the epoch of
    /// `partition`. Returns the number of the epoch.
    ///
    /// # Errors
    /// The error of the store if it did not accept the recorded state. The next call tries the
    /// replay again.
    pub(super) async fn replay_at(
        &self,
        partitions: &impl PartitionedEpochs,
        partition: usize,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let epoch = partitions.epoch_at(partition);
        if !partitions.is_paused_at(partition) {
            return Ok(epoch);
        }
        // Boxed: a replay is rare and must not make the future of every charge larger.
        Box::pin(self.repair_at(partitions, partition, now)).await
    }

    /// Applies the charges and records the answer. Returns the epoch to which the charges were
    /// sent.
    async fn charge_at(
        &self,
        partitions: &impl PartitionedEpochs,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> (u64, Result<Readings, StoreError>) {
        // If the replay fails, the store pauses the charges and returns an error.
        let settled = self.replay_at(partitions, partition, now).await.unwrap_or_default();
        let started = self.log.begin();
        let answer = partitions.apply_at(partition, now, charges).await;
        if let Ok(readings) = &answer {
            self.log.remember(started, now, charges, readings);
        }
        (settled, answer)
    }

    /// Returns the maximum age of recorded answers that are replayed to a store that was
    /// unreachable for `outage`. The store may lack younger answers.
    fn age_max(&self, outage: Millis) -> Millis {
        Millis::new(self.retention.get().saturating_add(outage.min(MAX_OUTAGE).get()))
    }

    async fn repair_at(
        &self,
        partitions: &impl PartitionedEpochs,
        partition: usize,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let passes = &mut *self.passes.lock().await;
        // An epoch that was replaced before its replay finished needs no further replay.
        passes.retain(|epoch, pass| pass.is_of(partitions, *epoch));
        loop {
            let epoch = partitions.epoch_at(partition);
            if !partitions.is_paused_at(partition) {
                return Ok(epoch);
            }
            let age_max = self.age_max(partitions.outage_at(partition));
            let pass = passes.entry(epoch).or_insert_with(|| {
                let mut known = self.log.known(now, age_max);
                known.retain(|known| known.is_of(partitions, epoch));
                self.counters.replays.fetch_add(u64::from(!known.is_empty()), Ordering::Relaxed);
                ReplayPass::new(known, now)
            });
            // The last attempt may be long ago.
            pass.drop_older_than(age_max);
            pass.go_on(partitions, epoch, now, self.time, &self.counters).await?;
            passes.remove(&epoch);
            partitions.release(epoch);
        }
    }
}
