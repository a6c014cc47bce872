//! The transfer of a subject's usage from one store to another, before the new store's first
//! decision.

mod reductions;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{CellKey, CellTransfer, Charge, Readings, StoreError, Timestamp};

use self::reductions::{UnconfirmedRefunds, reductions};
use super::bounded_cache::{BoundedCache, EvictionPriority};
use super::join::join_pair;

/// The default number of limits and subjects that are remembered as transferred.
pub const DEFAULT_TRANSFER_ENTRIES: usize = 65_536;

/// The default time that the transfer of a call's cells may take.
pub const DEFAULT_TRANSFER_TIME: Duration = Duration::from_millis(15);

/// Transfers the usage of a subject from its old store to its new store, before the new store's
/// first decision on the subject.
#[derive(Debug)]
pub(super) struct LazyTransfer {
    entries: BoundedCache<TransferEpoch>,
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
        charges
            .iter()
            .for_each(|charge| self.entries.forget_if(self.entries.key(charge), |_| true));
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
        let have_arrived = self.transfer(now, epoch, (from, to), transferring).await;
        let (forgotten, refunded) = reductions(transferring);
        if !forgotten.is_empty() {
            // Resets are sent to `from` first and must succeed at `from`. If only `to` executed a
            // reset, the next join would undo the reset.
            self.in_time(from.apply(now, &forgotten)).await?;
        }
        if refunded.is_empty() {
            return to.apply(now, charges).await;
        }
        let unconfirmed = UnconfirmedRefunds::new(&self.unconfirmed, &refunded);
        if !have_arrived {
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
    /// transferred in `epoch`. Returns whether the cells of all `charges` are transferred now.
    pub(super) async fn transfer(
        &self,
        now: Timestamp,
        epoch: u64,
        (from, to): (&impl CellTransfer, &impl CellTransfer),
        charges: &[Charge<'_>],
    ) -> bool {
        let mut cell_keys = Vec::new();
        let mut keys = Vec::new();
        for charge in charges {
            let key = self.entries.key(charge);
            if self.entries.get(key).is_none_or(|arrival| arrival.epoch != epoch) {
                cell_keys.push(CellKey { limit: charge.limit, subject: charge.subject });
                keys.push(key);
            }
        }
        if cell_keys.is_empty() {
            return true;
        }
        let turn = self.turn.load(Ordering::Acquire);
        let carry = async {
            let cells = from.cells(now, &cell_keys).await?;
            let held = cell_keys.into_iter().zip(cells);
            let held: Vec<_> =
                held.filter_map(|(cell_key, cell)| Some((cell_key, cell?))).collect();
            if !held.is_empty() {
                to.join(now, &held).await?;
            }
            Ok::<_, StoreError>(held.len() as u64)
        };
        match tokio::time::timeout(self.within, carry).await {
            Ok(Ok(count)) => {
                self.transferred.fetch_add(count, Ordering::Relaxed);
                // If a new transfer was requested while the cells were read, the cells may be older
                // than the request.
                if turn == self.turn.load(Ordering::Acquire) {
                    let arrival = TransferEpoch { epoch, at: now };
                    keys.into_iter().for_each(|key| self.entries.put(key, arrival, now));
                }
                true
            }
            Ok(Err(_)) | Err(_) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }
}
