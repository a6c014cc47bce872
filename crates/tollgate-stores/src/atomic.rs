//! All-or-nothing calls over state that is split into partitions.

mod detached;
mod span;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tollgate_core::{
    Cell, CellKey, Charge, Cost, Millis, Readings, Store, StoreError, Subject, Timestamp,
};

use super::owned_charge::OwnedCharge;
use detached::{DetachedCall, takes_permit};
use span::{is_charge, span};

/// The maximum number of concurrent calls that span several partitions or take permits of
/// concurrency limits.
///
/// Further calls over several partitions fail with [`StoreError::Unavailable`]. The number is
/// bounded because each such call may hold units at partitions that do not answer.
pub const MAX_SPANNING_CALLS: usize = 4_096;

/// State that is split into several partitions. Each partition is a store by itself.
pub trait Partitions: Send + Sync {
    /// Returns the index of the partition that keeps the counters of `subject`.
    fn partition(&self, subject: &Subject) -> usize;

    /// Applies `charges` at `partition`. All subjects of `charges` must belong to `partition`.
    ///
    /// # Errors
    /// [`StoreError`] if the partition does not answer.
    fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send;
}

/// [`Partitions`] with cells that can be read and joined, as in
/// [`CellTransfer`](tollgate_core::CellTransfer).
pub trait PartitionedCells: Partitions {
    /// Reads the cells of the limits and subjects in `cell_keys`. All of these subjects must belong
    /// to `partition`.
    ///
    /// # Errors
    /// [`StoreError`] if the partition does not answer.
    fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send;

    /// Joins `cells` with the cells that are stored at `partition`. The subjects of all cells must
    /// belong to `partition`.
    ///
    /// # Errors
    /// [`StoreError`] if the partition does not answer.
    fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// [`PartitionedCells`] in which each partition has one replication epoch at a time.
/// [`ReplicationEpochs`](tollgate_core::ReplicationEpochs) defines the replication epoch of a whole
/// store.
///
/// Partitions on the same server share an epoch. Every epoch has a number of its own. The number
/// zero means that the epoch of the partition is not known yet.
pub trait PartitionedEpochs: PartitionedCells {
    /// Returns the number of the current epoch of `partition`, to which charges at `partition` are
    /// sent now.
    fn epoch_at(&self, partition: usize) -> u64;

    /// Returns whether charges at `partition` are paused. Charges are paused until
    /// [`release`](Self::release) is called for the partition's current epoch.
    fn is_paused_at(&self, partition: usize) -> bool;

    /// Returns the time since the start of the outage of `partition` before its current epoch, or
    /// zero if there was none.
    fn outage_at(&self, partition: usize) -> Millis;

    /// Returns the epochs in which charges are paused now, each as the index of one of its
    /// partitions.
    fn held(&self) -> Vec<usize>;

    /// Ends the pause of charges at every partition in the epoch with the number `epoch`. Does
    /// nothing if no partition is in this epoch.
    fn release(&self, epoch: u64);
}

/// A store that makes calls over several [`Partitions`] all or nothing.
///
/// A call with one partition is passed on unchanged, as one atomic step without additional calls. A
/// call that spans partitions is applied at all of these partitions in parallel. If a partition
/// refuses or does not answer, the charges at the other partitions are refunded.
///
/// # Guarantees
/// - An admitted call is charged at every partition. A refused call is charged at no partition,
///   except on limits that count refusals, which count the call once. No call is admitted beyond a
///   quota.
/// - If the caller stops waiting, a call over several partitions continues with the same guarantees,
///   and the permits of concurrency limits that a call has taken are released. The number of these
///   calls is bounded by [`MAX_SPANNING_CALLS`]. Beyond it, the permits expire instead.
/// - Readings are in the order of the charges. The reading of a refunded charge is the status
///   without the charge.
///
/// # Limitations
/// - **Isolation.** The refund of a charge follows one round trip after the charge. Between the
///   two, other calls see the charged units as used. Another caller can see up to
///   [`max_held_units`] units too many and be refused because of these units, and a call that is
///   later refused can open a window. A call may be refused although it fits, but no call is
///   admitted beyond a limit.
/// - **Errors.** If a partition fails, the whole call fails. Units that this partition charged
///   without an answer stay used until their window ends. Units that could not be refunded also
///   stay used until their window ends ([`Atomic::unrefunded`] counts the charges of these units).
///   If another partition refused, these units include the units on limits that count refusals.
/// - **Cost.** An admitted call costs one call to each partition, in parallel. A refused call costs
///   one more call to each partition that charged. See [`max_store_calls`].
pub struct Atomic<H> {
    partitions: Arc<H>,
    permits: Arc<Semaphore>,
    unrefunded: Arc<AtomicU64>,
}

/// Returns the maximum number of additional units that a limit may report as used while calls over
/// several partitions are decided. In the worst case, each of `spanning` calls has charged `cost`
/// on the limit, and another partition will refuse the call.
#[must_use]
pub const fn max_held_units(spanning: u64, cost: Cost) -> u64 {
    spanning.saturating_mul(cost.get())
}

/// Returns the maximum number of store calls for one call over `partitions` partitions.
///
/// The first round trip consists of `partitions` calls. If a partition refuses or fails, a second
/// round trip follows, with one call to each other partition.
#[must_use]
pub const fn max_store_calls(partitions: usize) -> usize {
    if partitions <= 1 { partitions } else { partitions + partitions - 1 }
}

impl<H: Partitions> Atomic<H> {
    /// Creates a store that makes calls over `partitions`.
    #[must_use]
    pub fn new(partitions: H) -> Self {
        Self {
            partitions: Arc::new(partitions),
            permits: Arc::new(Semaphore::new(MAX_SPANNING_CALLS)),
            unrefunded: Arc::default(),
        }
    }

    /// Returns the partitions over which this store makes calls.
    #[must_use]
    pub fn partitions(&self) -> &H {
        &self.partitions
    }

    /// Returns the number of charges that could not be refunded after their call was refused or
    /// failed.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.unrefunded.load(Ordering::Relaxed)
    }

    /// Returns the partition of all `charges`, or `None` if the charges span several partitions.
    fn common_partition(&self, charges: &[Charge<'_>]) -> Option<usize> {
        let (first, rest) = charges.split_first()?;
        let partition = self.partitions.partition(first.subject);
        let is_there = |charge: &Charge<'_>| {
            charge.subject == first.subject
                || self.partitions.partition(charge.subject) == partition
        };
        rest.iter().all(is_there).then_some(partition)
    }
}

impl<H: Partitions + 'static> Store for Atomic<H> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if charges.is_empty() {
            return Ok(Readings::new());
        }
        let partition = self.common_partition(charges);
        // A detached call continues if the caller stops waiting: it must be completed at every
        // partition, and its permits must be released.
        let is_detached = match partition {
            Some(_) => charges.iter().any(takes_permit),
            None => charges.iter().any(is_charge),
        };
        if is_detached && let Ok(runtime) = Handle::try_current() {
            match Arc::clone(&self.permits).try_acquire_owned() {
                Ok(held) => {
                    let call = DetachedCall {
                        partitions: Arc::clone(&self.partitions),
                        unrefunded: Arc::clone(&self.unrefunded),
                        now,
                        charges: charges.iter().map(OwnedCharge::new).collect(),
                    };
                    return Box::pin(call.run(runtime, held)).await;
                }
                Err(_) if partition.is_none() => return Err(StoreError::Unavailable),
                Err(_) => {}
            }
        }
        match partition {
            Some(partition) => self.partitions.apply_at(partition, now, charges).await,
            None => span(&*self.partitions, now, charges, &self.unrefunded).await,
        }
    }
}

impl<H: fmt::Debug> fmt::Debug for Atomic<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Atomic").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}
