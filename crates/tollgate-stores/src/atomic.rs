//! All-or-nothing calls over state that is split into partitions.

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
use span::{span, takes};
use tollgate::trace::instrument;

/// The maximum number of concurrent calls that span several partitions.
///
/// Further calls fail with [`StoreError::Unavailable`]. The number is bounded because each call may
/// hold units at partitions that do not answer.
pub const MAX_SPANNING_CALLS: usize = 4_096;

/// State that is split into several partitions, each a store by itself.
pub trait Partitions: Send + Sync {
    /// Returns the index of the partition that keeps the counters of `subject`.
    fn partition(&self, subject: &Subject) -> usize;

    /// Applies `charges` at `partition`, which must be the partition of all their subjects.
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

/// [`Partitions`] whose cells can be read and joined, as in
/// [`CellTransfer`](tollgate_core::CellTransfer).
pub trait PartitionedCells: Partitions {
    /// Reads the cells for `places`, whose subjects all belong to `partition`.
    ///
    /// # Errors
    /// [`StoreError`] if the partition does not answer.
    fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send;

    /// Joins `cells`, whose subjects all belong to `partition`, with the cells stored there.
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

/// [`PartitionedCells`] in which each partition has one replication epoch at a time, as
/// [`ReplicationEpochs`](tollgate_core::ReplicationEpochs) defines it for a whole store.
///
/// Partitions on the same server share an epoch. Every epoch has a number of its own. The number
/// zero means that the epoch of the partition is not known yet.
pub trait PartitionedEpochs: PartitionedCells {
    /// Returns the number of the epoch to which charges at `partition` are sent now.
    fn epoch_at(&self, partition: usize) -> u64;

    /// Returns whether charges at `partition` are paused, because [`release`](Self::release) was
    /// not called for its current epoch yet.
    fn is_paused_at(&self, partition: usize) -> bool;

    /// Returns how long `partition` had not answered when its epoch began.
    fn outage_at(&self, partition: usize) -> Millis;

    /// Returns one partition of each epoch with charges that are paused now.
    fn held(&self) -> Vec<usize>;

    /// Allows charges at every partition with `history` as the number of its current epoch. Does
    /// nothing if no partition has this epoch.
    fn release(&self, history: u64);
}

/// A store that makes calls over several [`Partitions`] all or nothing.
///
/// A call with one partition is passed on unchanged, as one atomic step without additional calls. A
/// call that spans partitions is applied at all of them in parallel. If a partition refuses or does
/// not answer, the charges at the others are refunded.
///
/// # Guarantees
/// - An admitted call is charged at every partition. A refused call is charged at none, except on
///   limits that count refusals, which count it once. No call is admitted beyond a quota.
/// - If the caller stops waiting, the call continues with the same guarantees.
/// - Readings are in the order of the charges. Refunded charges read as if they had not been made.
///
/// # Limitations
/// - **Isolation.** Between the charge and its refund, one round trip later, other calls see those
///   units as used. Another caller can see up to [`max_held_units`] units too many and be refused
///   because of them, and a call that is later refused can open a window. This can refuse too much
///   but never admit too much.
/// - **Errors.** If a partition fails, the whole call fails. Units that this partition charged
///   without an answer stay used until their window ends, and so do units that could not be
///   refunded ([`Atomic::unrefunded`] counts these charges). If another partition refused, this
///   includes the units on limits that count refusals.
/// - **Cost.** An admitted call costs one call to each partition, in parallel. A refused call costs
///   one more call to each partition that charged. See [`max_store_calls`].
pub struct Atomic<H> {
    partitions: Arc<H>,
    permits: Arc<Semaphore>,
    unrefunded: Arc<AtomicU64>,
}

/// Returns the maximum units that a limit may report as used in addition while calls over several
/// partitions are decided: each of `spanning` calls has charged `cost`, and another partition will
/// refuse it.
#[must_use]
pub const fn max_held_units(spanning: u64, cost: Cost) -> u64 {
    spanning.saturating_mul(cost.get())
}

/// Returns the maximum number of store calls for one call over `partitions` partitions.
///
/// That is one round trip of `partitions` calls and, if a partition refuses or fails, a second
/// round trip to the others.
#[must_use]
pub const fn max_store_calls(partitions: usize) -> usize {
    if partitions <= 1 { partitions } else { partitions + partitions - 1 }
}

impl<H: Partitions> Atomic<H> {
    /// Creates a store over `partitions`.
    #[must_use]
    pub fn new(partitions: H) -> Self {
        Self {
            partitions: Arc::new(partitions),
            permits: Arc::new(Semaphore::new(MAX_SPANNING_CALLS)),
            unrefunded: Arc::default(),
        }
    }

    /// The partitions over which this store makes calls.
    #[must_use]
    pub fn partitions(&self) -> &H {
        &self.partitions
    }

    /// Returns the number of charges of refused or failed calls that could not be refunded.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.unrefunded.load(Ordering::Relaxed)
    }

    /// Returns the partition of all `charges`, or `None` if they span several.
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
        if let Some(partition) = self.common_partition(charges) {
            return self.partitions.apply_at(partition, now, charges).await;
        }
        if !charges.iter().any(takes) {
            return span(&*self.partitions, now, charges, &self.unrefunded).await;
        }
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return Err(StoreError::Unavailable);
        };
        // The call runs in its own task: a caller that stops waiting must not leave half a call
        // behind.
        let owned: Vec<_> = charges.iter().map(OwnedCharge::new).collect();
        let (partitions, unrefunded) = (Arc::clone(&self.partitions), Arc::clone(&self.unrefunded));
        let spanning = async move {
            let _held_until_done = permit;
            let charges: Vec<_> = owned.iter().map(OwnedCharge::as_charge).collect();
            span(&*partitions, now, &charges, &unrefunded).await
        };
        match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(instrument(spanning)).await.unwrap_or(Err(StoreError::Unavailable))
            }
            Err(_) => spanning.await,
        }
    }
}

impl<H: fmt::Debug> fmt::Debug for Atomic<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Atomic").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}
