//! One replay, which joins the recorded state in batches and with a time limit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tollgate_core::decide::join;
use tollgate_core::{Cell, CellKey, Cost, Millis, StoreError, Timestamp, assess};

use super::charge_log::KnownState;
use crate::atomic::PartitionedEpochs;
use crate::join::join_all;

/// The maximum number of cells in one query. The server processes no other call during a query.
pub(super) const BATCH: usize = 64;

/// The state that remains to be joined in an epoch.
#[derive(Debug)]
pub(super) struct ReplayPass {
    /// The remaining entries. The newest entry is the last and is joined first.
    left: Vec<KnownState>,
    /// The times at which the pass was created, by the clock of decisions and by a monotonic clock.
    created: (Timestamp, Instant),
    /// The time since which callers wait for the replay. `None` while the store cannot be reached.
    since: Option<Instant>,
}

/// The counters of replays, which are updated while replays run.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) replays: AtomicU64,
    pub(super) limits: AtomicU64,
    pub(super) units: AtomicU64,
    pub(super) abandoned: AtomicU64,
}

impl ReplayPass {
    /// Creates a pass for the state `known`, which was read at `now`.
    pub(super) fn new(known: Vec<KnownState>, now: Timestamp) -> Self {
        Self { left: known, created: (now, Instant::now()), since: None }
    }

    /// Drops the remaining state that is older than `age_max` now. Other nodes may have used the
    /// store since the state was recorded. The state ages by a monotonic clock, because the time of
    /// decisions can jump when a server with another clock is promoted.
    pub(super) fn drop_older_than(&mut self, age_max: Millis) {
        let (now, created) = self.created;
        let passed = u64::try_from(created.elapsed().as_millis()).unwrap_or(u64::MAX);
        let now = now.after(Millis::new(passed));
        self.left.retain(|known| now.since(known.recorded_at) <= age_max);
    }

    /// Returns whether some of the remaining state belongs to a partition that still has the epoch
    /// `epoch`.
    pub(super) fn is_of(&self, partitions: &impl PartitionedEpochs, epoch: u64) -> bool {
        self.left.iter().any(|known| known.is_of(partitions, epoch))
    }

    /// Joins the remaining state at the partitions with the epoch `epoch`. The time limit is
    /// `time`, counted from the time at which these partitions could first be reached. After the
    /// time limit, the rest of the state is abandoned.
    ///
    /// If the future is dropped, the next call does not join again the state that was already
    /// joined. State of a partition that now has another epoch is left to the replay of that epoch.
    ///
    /// # Errors
    /// The error of a partition that did not accept the state, if the time limit permits another
    /// attempt.
    pub(super) async fn go_on(
        &mut self,
        partitions: &impl PartitionedEpochs,
        epoch: u64,
        now: Timestamp,
        time: Duration,
        counters: &Counters,
    ) -> Result<(), StoreError> {
        self.left.retain(|known| known.is_of(partitions, epoch));
        while !self.left.is_empty() {
            let until = *self.since.get_or_insert_with(Instant::now) + time;
            let rest = self.left.len().saturating_sub(BATCH);
            let batch = join_missing(partitions, now, &self.left[rest..], counters);
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left, batch).await {
                Ok(Ok(())) => self.left.truncate(rest),
                Ok(Err(StoreError::Unavailable)) => {
                    self.since = None;
                    return Err(StoreError::Unavailable);
                }
                Ok(Err(error)) if Instant::now() < until => return Err(error),
                Ok(Err(_)) | Err(_) => {
                    counters.abandoned.fetch_add(self.left.len() as u64, Ordering::Relaxed);
                    self.left.clear();
                }
            }
        }
        Ok(())
    }
}

/// Joins the recorded state that `partitions` lack, in parallel, and counts the joined units.
pub(super) async fn join_missing(
    partitions: &impl PartitionedEpochs,
    now: Timestamp,
    known: &[KnownState],
    counters: &Counters,
) -> Result<(), StoreError> {
    let mut by_partition = BTreeMap::<usize, Vec<&KnownState>>::new();
    for known in known {
        by_partition.entry(partitions.partition(&known.subject)).or_default().push(known);
    }
    let each = by_partition.into_iter();
    let whole =
        each.map(|(partition, known)| join_missing_at(partitions, partition, now, known, counters));
    join_all(whole.collect()).await.into_iter().collect()
}

async fn join_missing_at(
    partitions: &impl PartitionedEpochs,
    partition: usize,
    now: Timestamp,
    known: Vec<&KnownState>,
    counters: &Counters,
) -> Result<(), StoreError> {
    let cell_keys: Vec<_> = known.iter().map(|known| known.cell_key()).collect();
    let kept = partitions.cells_at(partition, now, &cell_keys).await?;
    let (mut lacking, mut units) = (Vec::new(), 0_u64);
    for ((known, cell_key), kept) in known.into_iter().zip(cell_keys).zip(kept) {
        let joined = join(kept.clone(), known.cell.clone(), cell_key.limit, now);
        if joined == kept {
            continue;
        }
        let used =
            |cell: &Option<Cell>| assess(cell.as_ref(), cell_key.limit, Cost::PEEK, now).used;
        units = units.saturating_add(used(&joined).saturating_sub(used(&kept)));
        lacking.push((cell_key, known.cell.clone()));
    }
    if lacking.is_empty() {
        return Ok(());
    }
    partitions.join_at(partition, now, &lacking).await?;
    counters.limits.fetch_add(lacking.len() as u64, Ordering::Relaxed);
    counters.units.fetch_add(units, Ordering::Relaxed);
    Ok(())
}

impl KnownState {
    /// Returns whether the partition of this subject has the epoch `epoch`.
    pub(super) fn is_of(&self, partitions: &impl PartitionedEpochs, epoch: u64) -> bool {
        partitions.epoch_at(partitions.partition(&self.subject)) == epoch
    }

    fn cell_key(&self) -> CellKey<'_> {
        CellKey { limit: &self.limit, subject: &self.subject }
    }
}
