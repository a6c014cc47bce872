//! Who arrived at a store with what it used at another one.

mod lower;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{Cells, Charge, Place, Readings, StoreError, Timestamp};

use self::lower::{Unheard, lowering};
use super::join::both;
use super::recent::{Recent, Worth};

/// How many limits and subjects are remembered to have arrived, unless another number is set.
pub const DEFAULT_ARRIVALS: usize = 65_536;

/// How long bringing a call's cells along may take, unless another time is set.
pub const DEFAULT_CARRY: Duration = Duration::from_millis(15);

/// Brings what subjects used along to the store where they live now, before their first decision
/// there.
#[derive(Debug)]
pub(super) struct Arrivals {
    recent: Recent<Arrival>,
    within: Duration,
    carried: AtomicU64,
    failed: AtomicU64,
    unheard: AtomicU64,
    /// Rises whenever something is forgotten.
    turn: AtomicU64,
}

/// At what is numbered by the epoch: a store, and how it came that it is the one.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    epoch: u64,
    at: Timestamp,
}

impl Worth for Arrival {
    /// Who came last will come again soonest.
    fn worth(&self, _now: Timestamp) -> u64 {
        self.at.as_millis()
    }
}

impl Arrivals {
    pub(super) fn new(entries: usize) -> Self {
        Self {
            recent: Recent::new(entries),
            within: DEFAULT_CARRY,
            carried: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            unheard: AtomicU64::new(0),
            turn: AtomicU64::new(0),
        }
    }

    pub(super) fn with_time(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Cells that were brought along.
    pub(super) fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// Calls whose cells could not be, so that their next decision tries again.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// What was given back where it lives now, and is not known to have been where it came from.
    pub(super) fn unheard(&self) -> u64 {
        self.unheard.load(Ordering::Relaxed)
    }

    /// Has the next decision on `charges` bring their cells along once more.
    pub(super) fn forget(&self, charges: &[Charge<'_>]) {
        self.turn.fetch_add(1, Ordering::AcqRel);
        charges.iter().for_each(|charge| self.recent.forget_if(self.recent.key(charge), |_| true));
    }

    /// Has `to` decide on `charges`, once `arriving`, those of them whose subjects came from another
    /// store, have arrived from there in `epoch`.
    ///
    /// What lowers how a subject stands is asked of `from` as well: each node joins what that holds
    /// when it first meets the subject, and the larger of both stands. From an arrival on, `to` has
    /// counted all that `from` has. The same taken from both leaves that so, and every join exact.
    pub(super) async fn decide(
        &self,
        now: Timestamp,
        epoch: u64,
        (from, to): (&impl Cells, &impl Cells),
        arriving: &[Charge<'_>],
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let have_arrived = self.bring(now, epoch, (from, to), arriving).await;
        let (forgotten, given_back) = lowering(arriving);
        if !forgotten.is_empty() {
            // First, and not without: what is forgotten here alone comes back with the next join.
            self.in_time(from.apply(now, &forgotten)).await?;
        }
        if given_back.is_empty() {
            return to.apply(now, charges).await;
        }
        let unheard = Unheard::new(&self.unheard, &given_back);
        if !have_arrived {
            // It may be of a charge that `from` never had: what others used there is all that is
            // known of it, and is not to be lost.
            return to.apply(now, charges).await;
        }
        let heard = self.in_time(from.apply(now, &given_back));
        let (readings, heard) = both(to.apply(now, charges), heard).await;
        if heard.is_ok() {
            unheard.ends();
        }
        readings
    }

    /// What the store that subjects left answers in the time that bringing them along may take.
    async fn in_time(
        &self,
        answer: impl Future<Output = Result<Readings, StoreError>>,
    ) -> Result<Readings, StoreError> {
        tokio::time::timeout(self.within, answer).await.unwrap_or(Err(StoreError::TimedOut))
    }

    /// Joins into `to` what `from` holds of those of `charges` that have not arrived in `epoch`;
    /// whether all have now.
    pub(super) async fn bring(
        &self,
        now: Timestamp,
        epoch: u64,
        (from, to): (&impl Cells, &impl Cells),
        charges: &[Charge<'_>],
    ) -> bool {
        let mut places = Vec::new();
        let mut keys = Vec::new();
        for charge in charges {
            let key = self.recent.key(charge);
            if self.recent.get(key).is_none_or(|arrival| arrival.epoch != epoch) {
                places.push(Place { limit: charge.limit, subject: charge.subject });
                keys.push(key);
            }
        }
        if places.is_empty() {
            return true;
        }
        let turn = self.turn.load(Ordering::Acquire);
        let carry = async {
            let cells = from.cells(now, &places).await?;
            let held = places.into_iter().zip(cells);
            let held: Vec<_> = held.filter_map(|(place, cell)| Some((place, cell?))).collect();
            if !held.is_empty() {
                to.join(now, &held).await?;
            }
            Ok::<_, StoreError>(held.len() as u64)
        };
        match tokio::time::timeout(self.within, carry).await {
            Ok(Ok(count)) => {
                self.carried.fetch_add(count, Ordering::Relaxed);
                // What was read may be older than what is to be brought once more.
                if turn == self.turn.load(Ordering::Acquire) {
                    let arrival = Arrival { epoch, at: now };
                    keys.into_iter().for_each(|key| self.recent.put(key, arrival, now));
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
