//! All or nothing over state that has several partitions.

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
use crate::trace::instrument;
use span::{span, takes};

/// The most calls over several partitions at one time; one more is [`StoreError::Unavailable`].
///
/// Each may hold units at partitions that do not answer, so their number has to have an end.
pub const MAX_SPANNING_CALLS: usize = 4_096;

/// State that is kept at several partitions, each a store by itself.
pub trait Partitions: Send + Sync {
    /// The number of the partition of what `subject` uses.
    fn partition(&self, subject: &Subject) -> usize;

    /// Carries `charges` out at `partition`, which is that of all their subjects.
    ///
    /// # Errors
    /// [`StoreError`] if that partition could not say.
    fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send;
}

/// [`Partitions`] whose cells can be read out and taken in, as [`CellTransfer`](tollgate_core::CellTransfer) says.
pub trait PartitionedCells: Partitions {
    /// The cells for `places`, whose subjects all live at `partition`.
    ///
    /// # Errors
    /// [`StoreError`] if that partition could not say.
    fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send;

    /// Joins `cells`, whose subjects all live at `partition`, with what is kept there.
    ///
    /// # Errors
    /// [`StoreError`] if that partition could not say.
    fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// [`PartitionedCells`] of which each is of one history at a time, as
/// [`ReplicationEpochs`](tollgate_core::ReplicationEpochs) says of a whole store.
///
/// Several partitions may be of one history, as those are that one server keeps. No two histories have
/// the same number, except zero, which is that of a partition whose history nobody knows yet.
pub trait PartitionedEpochs: PartitionedCells {
    /// The number of the history that charges at `partition` would go to now.
    fn epoch_at(&self, partition: usize) -> u64;

    /// Whether charges at `partition` are held now, because its history is not released.
    fn is_paused_at(&self, partition: usize) -> bool;

    /// For how long nothing had been answered at `partition` when its history began.
    fn outage_at(&self, partition: usize) -> Millis;

    /// One partition of each history that is held now.
    fn held(&self) -> Vec<usize>;

    /// Charges may go to `history`, at whichever partitions are of it. One that is in force nowhere
    /// changes nothing.
    fn release(&self, history: u64);
}

/// Makes calls over several [`Partitions`] all or nothing.
///
/// A call with one partition is passed on as it is: one step, exact, at no cost. One that spans partitions
/// is taken at each of them at the same time. If a partition refuses, or has no answer, what the others
/// took is given back to where it was taken.
///
/// # What it keeps
/// - Admitted means charged at every partition, refused means charged at none, apart from limits that
///   count refusals, which count this one once. Nothing is ever admitted beyond a quota.
/// - That is so whether or not anyone still waits: the call goes on without its caller.
/// - Readings are in order; what was given back reads as if it had not been taken.
///
/// # What it weakens
/// - **The moment.** Between taking and giving back, which takes one more round trip, others see
///   those units in use. Another caller can be told up to [`max_held_units`] units too many, and be
///   refused for them; a window can have been opened for nothing. It costs refusals, never admits.
/// - **The answer.** With a partition's error the whole call has no answer. What that partition may have
///   taken unheard stays taken until its window is over; so does what could not be given back,
///   which [`Atomic::unrefunded`] counts. Where another partition refused, what counts refusals did.
/// - **The cost.** Admitted: a call to each partition, side by side. Refused: once more to those that
///   had taken. See [`max_store_calls`].
pub struct Atomic<H> {
    partitions: Arc<H>,
    permits: Arc<Semaphore>,
    unrefunded: Arc<AtomicU64>,
}

/// The units by which another caller may see a limit more used than it is, while `spanning` calls
/// that will be refused elsewhere each hold `cost`.
#[must_use]
pub const fn max_held_units(spanning: u64, cost: Cost) -> u64 {
    spanning.saturating_mul(cost.get())
}

/// The calls that one call over `partitions` partitions comes to, at most: one round trip of `partitions` calls,
/// and if a partition refuses or fails a second one to the others.
#[must_use]
pub const fn max_store_calls(partitions: usize) -> usize {
    if partitions <= 1 { partitions } else { partitions + partitions - 1 }
}

impl<H: Partitions> Atomic<H> {
    /// A store over `partitions`.
    #[must_use]
    pub fn new(partitions: H) -> Self {
        Self {
            partitions: Arc::new(partitions),
            permits: Arc::new(Semaphore::new(MAX_SPANNING_CALLS)),
            unrefunded: Arc::default(),
        }
    }

    /// The partitions.
    #[must_use]
    pub fn partitions(&self) -> &H {
        &self.partitions
    }

    /// How many charges were taken for nothing and could not be given back.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.unrefunded.load(Ordering::Relaxed)
    }

    /// The partition of all `charges`, or `None` if they have several.
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
        // On a task of its own, so that a caller who leaves does not leave half a call behind.
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
