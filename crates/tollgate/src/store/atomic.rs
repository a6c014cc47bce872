//! All or nothing over state that has several homes.

mod span;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tollgate_core::{
    Cell, Charge, Cost, Millis, Place, Readings, Store, StoreError, Subject, Timestamp,
};

use super::owned::Owned;
use crate::trace::carry;
use span::{span, takes};

/// The most calls over several homes at one time; one more is [`StoreError::Unavailable`].
///
/// Each may hold units at homes that do not answer, so their number has to have an end.
pub const MAX_SPANNING: usize = 4_096;

/// State that is kept at several homes, each a store by itself.
pub trait Homes: Send + Sync {
    /// The number of the home of what `subject` uses.
    fn home(&self, subject: &Subject) -> usize;

    /// Carries `charges` out at `home`, which is that of all their subjects.
    ///
    /// # Errors
    /// [`StoreError`] if that home could not say.
    fn apply_at(
        &self,
        home: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send;
}

/// [`Homes`] whose cells can be read out and taken in, as [`Cells`](tollgate_core::Cells) says.
pub trait HomesOfCells: Homes {
    /// The cells for `places`, whose subjects all live at `home`.
    ///
    /// # Errors
    /// [`StoreError`] if that home could not say.
    fn cells_at(
        &self,
        home: usize,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send;

    /// Joins `cells`, whose subjects all live at `home`, with what is kept there.
    ///
    /// # Errors
    /// [`StoreError`] if that home could not say.
    fn join_at(
        &self,
        home: usize,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// [`HomesOfCells`] of which each is of one history at a time, as
/// [`Histories`](tollgate_core::Histories) says of a whole store.
///
/// Several homes may be of one history, as those are that one server keeps. No two histories have
/// the same number, except zero, which is that of a home whose history nobody knows yet.
pub trait HomesOfHistories: HomesOfCells {
    /// The number of the history that charges at `home` would go to now.
    fn history_at(&self, home: usize) -> u64;

    /// Whether charges at `home` are held now, because its history is not released.
    fn holds_at(&self, home: usize) -> bool;

    /// For how long nothing had been answered at `home` when its history began.
    fn outage_at(&self, home: usize) -> Millis;

    /// One home of each history that is held now.
    fn held(&self) -> Vec<usize>;

    /// Charges may go to `history`, at whichever homes are of it. One that is in force nowhere
    /// changes nothing.
    fn release(&self, history: u64);
}

/// Makes calls over several [`Homes`] all or nothing.
///
/// A call with one home is passed on as it is: one step, exact, at no cost. One that spans homes
/// is taken at each of them at the same time. If a home refuses, or has no answer, what the others
/// took is given back to where it was taken.
///
/// # What it keeps
/// - Admitted means charged at every home, refused means charged at none, apart from limits that
///   count refusals, which count this one once. Nothing is ever admitted beyond a quota.
/// - That is so whether or not anyone still waits: the call goes on without its caller.
/// - Readings are in order; what was given back reads as if it had not been taken.
///
/// # What it weakens
/// - **The moment.** Between taking and giving back, which takes one more round trip, others see
///   those units in use. Another caller can be told up to [`held_at_most`] units too many, and be
///   refused for them; a window can have been opened for nothing. It costs refusals, never admits.
/// - **The answer.** With a home's error the whole call has no answer. What that home may have
///   taken unheard stays taken until its window is over; so does what could not be given back,
///   which [`Atomic::stranded`] counts. Where another home refused, what counts refusals did.
/// - **The cost.** Admitted: a call to each home, side by side. Refused: once more to those that
///   had taken. See [`calls_at_most`].
pub struct Atomic<H> {
    homes: Arc<H>,
    permits: Arc<Semaphore>,
    stranded: Arc<AtomicU64>,
}

/// The units by which another caller may see a limit more used than it is, while `spanning` calls
/// that will be refused elsewhere each hold `cost`.
#[must_use]
pub const fn held_at_most(spanning: u64, cost: Cost) -> u64 {
    spanning.saturating_mul(cost.get())
}

/// The calls that one call over `homes` homes comes to, at most: one round trip of `homes` calls,
/// and if a home refuses or fails a second one to the others.
#[must_use]
pub const fn calls_at_most(homes: usize) -> usize {
    if homes <= 1 { homes } else { homes + homes - 1 }
}

impl<H: Homes> Atomic<H> {
    /// A store over `homes`.
    #[must_use]
    pub fn new(homes: H) -> Self {
        Self {
            homes: Arc::new(homes),
            permits: Arc::new(Semaphore::new(MAX_SPANNING)),
            stranded: Arc::default(),
        }
    }

    /// The homes.
    #[must_use]
    pub fn homes(&self) -> &H {
        &self.homes
    }

    /// How many charges were taken for nothing and could not be given back.
    #[must_use]
    pub fn stranded(&self) -> u64 {
        self.stranded.load(Ordering::Relaxed)
    }

    /// The home of all `charges`, or `None` if they have several.
    fn common_home(&self, charges: &[Charge<'_>]) -> Option<usize> {
        let (first, rest) = charges.split_first()?;
        let home = self.homes.home(first.subject);
        let is_there = |charge: &Charge<'_>| {
            charge.subject == first.subject || self.homes.home(charge.subject) == home
        };
        rest.iter().all(is_there).then_some(home)
    }
}

impl<H: Homes + 'static> Store for Atomic<H> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if charges.is_empty() {
            return Ok(Readings::new());
        }
        if let Some(home) = self.common_home(charges) {
            return self.homes.apply_at(home, now, charges).await;
        }
        if !charges.iter().any(takes) {
            return span(&*self.homes, now, charges, &self.stranded).await;
        }
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return Err(StoreError::Unavailable);
        };
        // On a task of its own, so that a caller who leaves does not leave half a call behind.
        let owned: Vec<_> = charges.iter().map(Owned::new).collect();
        let (homes, stranded) = (Arc::clone(&self.homes), Arc::clone(&self.stranded));
        let spanning = async move {
            let _held_until_done = permit;
            let charges: Vec<_> = owned.iter().map(Owned::as_charge).collect();
            span(&*homes, now, &charges, &stranded).await
        };
        match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(carry(spanning)).await.unwrap_or(Err(StoreError::Unavailable))
            }
            Err(_) => spanning.await,
        }
    }
}

impl<H: fmt::Debug> fmt::Debug for Atomic<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Atomic").field("homes", &self.homes).finish_non_exhaustive()
    }
}
