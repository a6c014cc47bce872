//! The transfer of a subject's usage from one store to another, before the new store's first
//! decision.

mod reductions;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::decide::join;
use tollgate_core::{
    Algorithm, Cell, CellKey, CellTransfer, Charge, Limit, Readings, StoreError, Timestamp,
};

use self::reductions::{UnconfirmedRefunds, reductions};
use super::bounded_cache::{BoundedCache, EvictionPriority, Key};
use super::join::join_pair;

/// The default number of limits and subjects that are remembered as transferred.
pub const DEFAULT_TRANSFER_ENTRIES: usize = 65_536;

/// The default time that the transfer of a call's cells may take.
pub const DEFAULT_TRANSFER_TIME: Duration = Duration::from_millis(15);

/// The most joins of one transfer among charges. If charges of other nodes overtake every join, the
/// caller decides without the transfer, and the next call transfers again.
const MAX_JOINS: usize = 3;

/// The result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The new store has counted everything that the old store has counted.
    Complete,
    /// Charges of other nodes arrived during every join, so the new store may have counted less.
    Overtaken,
    /// One of the stores did not answer in time.
    Failed,
}

/// Transfers the usage of a subject from its old store to its new store, before the new store's
/// first decision on the subject.
#[derive(Debug)]
pub(super) struct LazyTransfer {
    entries: BoundedCache<TransferEpoch>,
    is_by_quota: bool,
    within: Duration,
    transferred: AtomicU64,
    failed: AtomicU64,
    unconfirmed: AtomicU64,
    /// The number of calls of [`forget`](Self::forget) so far. If it changes during a transfer, the
    /// transfer is not recorded.
    turn: AtomicU64,
}

/// The record of a transfer. The epoch identifies the store that owns the subject and the change
/// that made that store the owner.
#[derive(Clone, Copy, Debug)]
struct TransferEpoch {
    epoch: u64,
    /// The largest burst with which a token bucket was transferred, and zero for other limits. A
    /// smaller bucket can be full, and then transfers nothing, while a larger bucket lacks tokens.
    burst: u64,
    at: Timestamp,
}

impl EvictionPriority for TransferEpoch {
    /// Evicts the oldest record first, because subjects that were transferred recently are the most
    /// likely to return soon.
    fn eviction_priority(&self, _now: Timestamp) -> u64 {
        self.at.as_millis()
    }
}

impl LazyTransfer {
    pub(super) fn new(entries: usize) -> Self {
        Self {
            entries: BoundedCache::new(entries),
            is_by_quota: false,
            within: DEFAULT_TRANSFER_TIME,
            transferred: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            unconfirmed: AtomicU64::new(0),
            turn: AtomicU64::new(0),
        }
    }

    pub(super) fn with_time(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Transfers a subject once for each quota. Without this setting, a subject with several quotas
    /// is transferred once.
    pub(super) fn by_quota(mut self) -> Self {
        self.is_by_quota = true;
        self
    }

    /// Returns the number of cells that were transferred.
    pub(super) fn transferred(&self) -> u64 {
        self.transferred.load(Ordering::Relaxed)
    }

    /// Returns the number of calls with cells that could not be transferred. The next decision on
    /// the same subjects tries again.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns the number of refunds at the new store that are not known to have reached the old
    /// store.
    pub(super) fn unconfirmed(&self) -> u64 {
        self.unconfirmed.load(Ordering::Relaxed)
    }

    /// Removes the records of the transfers of the subjects of `charges`, so these subjects are
    /// transferred once more before their next decision.
    pub(super) fn forget(&self, charges: &[Charge<'_>]) {
        self.turn.fetch_add(1, Ordering::AcqRel);
        for charge in charges {
            self.entries.update(self.key(charge), Timestamp::EPOCH, |_| None);
        }
    }

    fn key(&self, charge: &Charge<'_>) -> Key {
        match self.is_by_quota {
            true => self.entries.quota_key(charge),
            false => self.entries.key(charge),
        }
    }

    /// Applies `charges` at `to`. Before, the usage of the subjects of `transferring` is
    /// transferred from `from`, unless it was already transferred in `epoch`.
    ///
    /// Refunds and resets are sent to `from` as well. Each node joins the cells of `from` when the
    /// node first decides on the subject, and a join keeps the larger value. After a transfer, `to`
    /// has counted everything that `from` has counted. If `to` and `from` are reduced equally, `to`
    /// still has counted everything that `from` has counted, and every join stays exact.
    pub(super) async fn decide(
        &self,
        now: Timestamp,
        epoch: u64,
        (from, to): (&impl CellTransfer, &impl CellTransfer),
        transferring: &[Charge<'_>],
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let has_arrived = self.transfer(now, |_| epoch, (from, to), transferring).await;
        self.apply(now, (from, to), has_arrived, transferring, charges).await
    }

    /// Applies `charges` at `to`, and the refunds and resets of `transferred` at `from` as well.
    /// `has_arrived` is true if the usage of `transferred` was transferred from `from`.
    pub(super) async fn apply(
        &self,
        now: Timestamp,
        (from, to): (&impl CellTransfer, &impl CellTransfer),
        has_arrived: bool,
        transferred: &[Charge<'_>],
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let (forgotten, refunded) = reductions(transferred);
        if !forgotten.is_empty() {
            // Resets are sent to `from` first and must succeed at `from`. If only `to` executed a
            // reset, the next join would undo the reset.
            self.in_time(from.apply(now, &forgotten)).await?;
        }
        if refunded.is_empty() {
            return to.apply(now, charges).await;
        }
        let unconfirmed = UnconfirmedRefunds::new(&self.unconfirmed, &refunded);
        if !has_arrived {
            // `from` may have no record of the charge. In that case, the usage at `from` belongs to
            // other charges, is recorded nowhere else, and must not be reduced.
            return to.apply(now, charges).await;
        }
        let refund_result = self.in_time(from.apply(now, &refunded));
        let (readings, refund_result) = join_pair(to.apply(now, charges), refund_result).await;
        if refund_result.is_ok() {
            unconfirmed.ends();
        }
        readings
    }

    /// Waits for an answer of the old store, for at most the transfer time.
    async fn in_time(
        &self,
        answer: impl Future<Output = Result<Readings, StoreError>>,
    ) -> Result<Readings, StoreError> {
        tokio::time::timeout(self.within, answer).await.unwrap_or(Err(StoreError::TimedOut))
    }

    /// Joins cells of `from` into `to`, for the limits and subjects of `charges` that were not
    /// transferred in their epoch. `epoch` returns the epoch of a charge. Returns whether the cells
    /// of all `charges` are transferred now.
    pub(super) async fn transfer(
        &self,
        now: Timestamp,
        epoch: impl Fn(&Charge<'_>) -> u64,
        (from, to): (&impl CellTransfer, &impl CellTransfer),
        charges: &[Charge<'_>],
    ) -> bool {
        let open = self.open(now, epoch, charges);
        let carry = async {
            let cells = from.cells(now, &open.cell_keys).await?;
            let held = held(&open.cell_keys, cells);
            if !held.is_empty() {
                to.join(now, &held).await?;
            }
            Ok((held.len(), Arrival::Complete))
        };
        self.finish(now, &open, carry).await != Arrival::Failed
    }

    /// Transfers like [`transfer`](Self::transfer) while other nodes charge `from`, and then `to`.
    ///
    /// A join keeps the larger value, so one join is not enough: if `to` has counted less than
    /// `from`, and both count another charge after the cells of `from` were read, the join replaces
    /// this charge. Therefore the transfer is complete only when the cells of `to` contain all of
    /// the cells that `from` has afterwards.
    pub(super) async fn transfer_among_charges(
        &self,
        now: Timestamp,
        epoch: u64,
        (from, to): (&impl CellTransfer, &impl CellTransfer),
        charges: &[Charge<'_>],
    ) -> Arrival {
        let open = self.open(now, |_| epoch, charges);
        let carry = async {
            let mut count = 0;
            for joins in 0..=MAX_JOINS {
                let arrived = to.cells(now, &open.cell_keys).await?;
                let left = from.cells(now, &open.cell_keys).await?;
                count = count.max(left.iter().flatten().count());
                let both = left.into_iter().zip(arrived).zip(&open.cell_keys);
                let missing = both.map(|((left, arrived), cell_key)| {
                    left.filter(|left| !contains(arrived.as_ref(), left, cell_key.limit, now))
                });
                let missing = held(&open.cell_keys, missing);
                if missing.is_empty() {
                    return Ok((count, Arrival::Complete));
                }
                if joins < MAX_JOINS {
                    to.join(now, &missing).await?;
                }
            }
            Ok((count, Arrival::Overtaken))
        };
        self.finish(now, &open, carry).await
    }

    /// Returns the limits and subjects of `charges` that were not transferred in their epoch.
    fn open<'c>(
        &self,
        now: Timestamp,
        epoch: impl Fn(&Charge<'_>) -> u64,
        charges: &[Charge<'c>],
    ) -> OpenTransfer<'c> {
        let (mut cell_keys, mut keys) = (Vec::new(), Vec::new());
        for charge in charges {
            let (key, epoch) = (self.key(charge), epoch(charge));
            let burst = match charge.limit.algorithm() {
                Algorithm::TokenBucket(bucket) => bucket.burst(),
                _ => 0,
            };
            let is_open = |arrival: TransferEpoch| arrival.epoch != epoch || arrival.burst < burst;
            if self.entries.get(key).is_none_or(is_open) {
                cell_keys.push(CellKey { limit: charge.limit, subject: charge.subject });
                keys.push((key, TransferEpoch { epoch, burst, at: now }));
            }
        }
        OpenTransfer { cell_keys, keys, turn: self.turn.load(Ordering::Acquire) }
    }

    /// Executes `carry`, which transfers the cells of `open` and returns their number. Records a
    /// complete transfer.
    async fn finish(
        &self,
        now: Timestamp,
        open: &OpenTransfer<'_>,
        carry: impl Future<Output = Result<(usize, Arrival), StoreError>>,
    ) -> Arrival {
        if open.keys.is_empty() {
            return Arrival::Complete;
        }
        let Ok(Ok((count, arrival))) = tokio::time::timeout(self.within, carry).await else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return Arrival::Failed;
        };
        self.transferred.fetch_add(count as u64, Ordering::Relaxed);
        if arrival == Arrival::Complete {
            self.record(now, open);
        }
        arrival
    }

    /// Records the transfers of `open`. If a new transfer was requested since `open` was created,
    /// the transferred cells may be older than the request, and nothing is recorded.
    fn record(&self, now: Timestamp, open: &OpenTransfer<'_>) {
        for (key, arrival) in &open.keys {
            self.entries.update(*key, now, |known| {
                // The record is locked, so `forget` either changed the turn or removes the record.
                let is_current = open.turn == self.turn.load(Ordering::Acquire);
                if is_current { Some(*arrival) } else { known }
            });
        }
    }
}

/// The limits and subjects that a call must transfer.
struct OpenTransfer<'c> {
    cell_keys: Vec<CellKey<'c>>,
    /// The key of each limit and subject, and the record of its transfer.
    keys: Vec<(Key, TransferEpoch)>,
    /// The value of [`LazyTransfer::turn`] before the transfer.
    turn: u64,
}

/// Returns the cells that exist, each with its key.
fn held<'c>(
    cell_keys: &[CellKey<'c>],
    cells: impl IntoIterator<Item = Option<Cell>>,
) -> Vec<(CellKey<'c>, Cell)> {
    let both = cell_keys.iter().zip(cells);
    both.filter_map(|(cell_key, cell)| Some((*cell_key, cell?))).collect()
}

/// Returns whether `cell` has counted everything that `other` has counted.
fn contains(cell: Option<&Cell>, other: &Cell, limit: &Limit, now: Timestamp) -> bool {
    join(cell.cloned(), other.clone(), limit, now).as_ref() == cell
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use tollgate_core::algo::{Anchor, FixedWindow};
    use tollgate_core::{Algorithm, Cost, Millis, Operation, Subject};

    use super::*;

    /// The bug: a transfer that was recorded while it was forgotten stayed recorded, so the subject
    /// was not transferred again.
    #[test]
    fn a_transfer_was_recorded_after_it_was_forgotten() {
        const ROUNDS: u64 = 5_000;
        let window = FixedWindow::new(5, Millis::new(1_000), Anchor::Calendar).unwrap();
        let limit = Limit::new("limit", Algorithm::FixedWindow(window)).unwrap();
        let subject = Subject::default();
        let operation = Operation::Peek { cost: Cost::PEEK };
        let charges = [Charge { limit: &limit, subject: &subject, operation }];
        let (transfer, start) = (LazyTransfer::new(1), Barrier::new(2));
        let is_open = || !transfer.open(Timestamp::EPOCH, |_| 1, &charges).keys.is_empty();
        let mut recorded = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    start.wait();
                    transfer.forget(&charges);
                    start.wait();
                }
            });
            for _ in 0..ROUNDS {
                let open = transfer.open(Timestamp::EPOCH, |_| 1, &charges);
                start.wait();
                transfer.record(Timestamp::EPOCH, &open);
                start.wait();
                recorded += u64::from(!is_open());
            }
        });
        assert_eq!(recorded, 0);
    }
}
