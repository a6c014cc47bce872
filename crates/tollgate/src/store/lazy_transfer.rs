//! Who arrived at a store with what it used at another one.

mod reductions;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{CellKey, CellTransfer, Charge, Readings, StoreError, Timestamp};

use self::reductions::{UnconfirmedRefunds, reductions};
use super::bounded_cache::{BoundedCache, EvictionPriority};
use super::join::join_pair;

/// How many limits and subjects are remembered to have arrived, unless another number is set.
pub const DEFAULT_TRANSFER_ENTRIES: usize = 65_536;

/// How long bringing a call's cells along may take, unless another time is set.
pub const DEFAULT_TRANSFER_TIME: Duration = Duration::from_millis(15);

/// Brings what subjects used along to the store where they live now, before their first decision
/// there.
#[derive(Debug)]
pub(super) struct LazyTransfer {
    entries: BoundedCache<TransferEpoch>,
    within: Duration,
    transferred: AtomicU64,
    failed: AtomicU64,
    unconfirmed: AtomicU64,
    /// Rises whenever something is forgotten.
    turn: AtomicU64,
}

/// At what is numbered by the epoch: a store, and how it came that it is the one.
#[derive(Clone, Copy, Debug)]
struct TransferEpoch {
    epoch: u64,
    at: Timestamp,
}

impl EvictionPriority for TransferEpoch {
    /// Who came last will come again soonest.
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

    /// CellTransfer that were brought along.
    pub(super) fn transferred(&self) -> u64 {
        self.transferred.load(Ordering::Relaxed)
    }

    /// Calls whose cells could not be, so that their next decision tries again.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// What was given back where it lives now, and is not known to have been where it came from.
    pub(super) fn unconfirmed(&self) -> u64 {
        self.unconfirmed.load(Ordering::Relaxed)
    }

    /// Has the next decision on `charges` bring their cells along once more.
    pub(super) fn forget(&self, charges: &[Charge<'_>]) {
        self.turn.fetch_add(1, Ordering::AcqRel);
        charges
            .iter()
            .for_each(|charge| self.entries.forget_if(self.entries.key(charge), |_| true));
    }

    /// Has `to` decide on `charges`, once `transferring`, those of them whose subjects came from another
    /// store, have arrived from there in `epoch`.
    ///
    /// What lowers how a subject stands is asked of `from` as well: each node joins what that holds
    /// when it first meets the subject, and the larger of both stands. From an arrival on, `to` has
    /// counted all that `from` has. The same taken from both leaves that so, and every join exact.
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
            // First, and not without: what is forgotten here alone comes back with the next join.
            self.in_time(from.apply(now, &forgotten)).await?;
        }
        if refunded.is_empty() {
            return to.apply(now, charges).await;
        }
        let unconfirmed = UnconfirmedRefunds::new(&self.unconfirmed, &refunded);
        if !have_arrived {
            // It may be of a charge that `from` never had: what others used there is all that is
            // known of it, and is not to be lost.
            return to.apply(now, charges).await;
        }
        let heard = self.in_time(from.apply(now, &refunded));
        let (readings, heard) = join_pair(to.apply(now, charges), heard).await;
        if heard.is_ok() {
            unconfirmed.ends();
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
    pub(super) async fn transfer(
        &self,
        now: Timestamp,
        epoch: u64,
        (from, to): (&impl CellTransfer, &impl CellTransfer),
        charges: &[Charge<'_>],
    ) -> bool {
        let mut places = Vec::new();
        let mut keys = Vec::new();
        for charge in charges {
            let key = self.entries.key(charge);
            if self.entries.get(key).is_none_or(|arrival| arrival.epoch != epoch) {
                places.push(CellKey { limit: charge.limit, subject: charge.subject });
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
                self.transferred.fetch_add(count, Ordering::Relaxed);
                // What was read may be older than what is to be brought once more.
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
