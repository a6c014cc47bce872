//! Charges that wait until what is remembered of their history is in it.

use std::sync::atomic::Ordering;

use tollgate_core::{Charge, Millis, Readings, StoreError, Timestamp};

use super::pass::{ReplayPass, join_missing};
use super::{FailoverReplay, MAX_OUTAGE};
use crate::store::atomic::PartitionedEpochs;

impl<S> FailoverReplay<S> {
    /// Carries `charges` out at `partition`, whose history is repaired before.
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
        let (mut history, mut answer) = self.charge_at(partitions, partition, now, charges).await;
        if matches!(answer, Err(StoreError::Unavailable))
            && history != partitions.epoch_at(partition)
        {
            // It was held back: another history began while it waited to be sent.
            (history, answer) = Box::pin(self.charge_at(partitions, partition, now, charges)).await;
        }
        if answer.is_ok() && history != partitions.epoch_at(partition) {
            // An old history's last word: the repair of the new one may not have known of it.
            let known = self.log.known_of(now, charges);
            // It is decided, whether it can be joined or not.
            let _ = Box::pin(join_missing(partitions, now, &known, &self.counters)).await;
        }
        answer
    }

    /// Repairs the history of `partition`, if it is held; answers which one it is.
    ///
    /// # Errors
    /// Why what is remembered was not taken. It will be tried again.
    pub(super) async fn replay_at(
        &self,
        partitions: &impl PartitionedEpochs,
        partition: usize,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let history = partitions.epoch_at(partition);
        if !partitions.is_paused_at(partition) {
            return Ok(history);
        }
        // Boxed, as all that is rare: so that it makes no charge larger.
        Box::pin(self.repair_at(partitions, partition, now)).await
    }

    /// Charges, and remembers the answer; the history that the charges were meant for.
    async fn charge_at(
        &self,
        partitions: &impl PartitionedEpochs,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> (u64, Result<Readings, StoreError>) {
        // Where it fails, the store holds the charges back and says so.
        let settled = self.replay_at(partitions, partition, now).await.unwrap_or_default();
        let begun = self.log.begin();
        let answer = partitions.apply_at(partition, now, charges).await;
        if let Ok(readings) = &answer {
            self.log.remember(begun, now, charges, readings);
        }
        (settled, answer)
    }

    /// How old the oldest is of what a store may lack that nobody could ask during `outage`.
    fn age_max(&self, outage: Millis) -> Millis {
        Millis::new(self.remembered.get().saturating_add(outage.min(MAX_OUTAGE).get()))
    }

    async fn repair_at(
        &self,
        partitions: &impl PartitionedEpochs,
        partition: usize,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let passes = &mut *self.passes.lock().await;
        // One that was replaced again before it was whole has nothing more to be told.
        passes.retain(|history, pass| pass.is_of(partitions, *history));
        loop {
            let history = partitions.epoch_at(partition);
            if !partitions.is_paused_at(partition) {
                return Ok(history);
            }
            let pass = passes.entry(history).or_insert_with(|| {
                let mut known = self.log.known(now, self.age_max(partitions.outage_at(partition)));
                known.retain(|known| known.is_of(partitions, history));
                self.counters.repairs.fetch_add(u64::from(!known.is_empty()), Ordering::Relaxed);
                ReplayPass::new(known)
            });
            pass.go_on(partitions, history, now, self.time, &self.counters).await?;
            passes.remove(&history);
            partitions.release(history);
        }
    }
}
