//! The bounded table of a node's leases, by limit and subject.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tollgate_core::{
    Admission, Charge, ChargePosition, Cost, LimitMode, Operation, Reading, StoreError,
    StoredState, Timestamp,
};

use super::config::{HOT_WINDOW, LeaseConfig};
use super::entry::{LeaseEntry, LeaseOutcome, LeaseReceiver, LeaseSubject, ReplyCount};
use crate::bounded_cache::{BoundedCache, EvictionPriority, Key};

/// The number of segments of the table. Each segment has its own lock.
const SHARDS: usize = 16;

/// The maximum length in bytes of a subject with a lease. This length bounds the table's size in
/// bytes.
pub const MAX_SUBJECT_BYTES: usize = 1_024;

/// A refund operation with its limit and subject.
pub(super) type LeaseRefund = (Arc<LeaseSubject>, Operation);

/// The entries of a node, one for each limit and subject with a lease, and the recent charge rates
/// of other limits and subjects.
pub(super) struct Table {
    config: LeaseConfig,
    warm: BoundedCache<ChargeRate>,
    shards: Box<[Mutex<HashMap<Key, LeaseEntry>>]>,
    of_shard: usize,
    /// The number of resets so far, which discard leases.
    resets: AtomicU64,
}

/// The recent charges on a limit and subject without a lease.
#[derive(Clone, Copy)]
struct ChargeRate {
    since: Timestamp,
    charges: u32,
}

impl EvictionPriority for ChargeRate {
    /// Evicts the oldest entry first.
    fn eviction_priority(&self, _now: Timestamp) -> u64 {
        self.since.as_millis()
    }
}

/// The action of a caller before a charge that the lease does not cover.
pub(super) enum LeaseStep {
    /// No action. The lease covers the charge, or the charge must be sent to the store.
    Nothing,
    /// Wait for another caller that is taking a lease.
    Wait(LeaseReceiver),
    /// Take a lease of `units` and report the result to all waiting callers.
    Acquire {
        account: Arc<LeaseSubject>,
        units: u64,
        sent_at: ReplyCount,
        sender: watch::Sender<Option<LeaseOutcome>>,
        receiver: LeaseReceiver,
    },
}

impl Table {
    pub(super) fn new(leases: usize, config: LeaseConfig) -> Self {
        Self {
            config,
            warm: BoundedCache::new(leases),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            of_shard: leases.div_ceil(SHARDS),
            resets: AtomicU64::new(0),
        }
    }

    pub(super) const fn config(&self) -> &LeaseConfig {
        &self.config
    }

    pub(super) const fn capacity(&self) -> usize {
        self.of_shard * SHARDS
    }

    /// Returns the number of resets so far.
    pub(super) fn resets(&self) -> u64 {
        self.resets.load(Ordering::Acquire)
    }

    /// Returns the number of limits and subjects that have an entry.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Applies `charge` to the lease of its limit and subject. Returns `None` if the charge must be
    /// sent to the store.
    #[inline]
    pub(super) fn answer(&self, now: Timestamp, charge: &Charge<'_>) -> Option<Reading> {
        self.on(charge, |entry| entry.answer(charge.operation, now, &self.config))?
    }

    /// Undoes a local charge at `position`, and returns the status without the charge. Returns
    /// `None` if nothing could be undone.
    pub(super) fn undo_charge(
        &self,
        charge: &Charge<'_>,
        position: ChargePosition,
    ) -> Option<Reading> {
        self.on(charge, |entry| entry.undo_charge(charge.operation.cost(), position))?
    }

    /// Returns the action of the caller before `charge` at `now`. Only one caller at a time takes a
    /// lease for a limit and subject.
    pub(super) fn begin(&self, now: Timestamp, charge: &Charge<'_>) -> LeaseStep {
        let Operation::Charge { cost, .. } = charge.operation else { return LeaseStep::Nothing };
        let begun = self.on(charge, |entry| {
            // If the task that takes the lease ended without a result, the attempt counts as ended.
            entry.turn.take_if(|turn| turn.has_changed().is_err());
            if let Some(turn) = &entry.turn {
                return LeaseStep::Wait(turn.clone());
            }
            let Some(units) = entry.wanted(cost, now, &self.config) else {
                return LeaseStep::Nothing;
            };
            let (sender, receiver) = watch::channel(None);
            entry.turn = Some(receiver.clone());
            let (account, sent_at) = (Arc::clone(&entry.account), entry.replies());
            LeaseStep::Acquire { account, units, sent_at, sender, receiver }
        });
        begun.unwrap_or(LeaseStep::Nothing)
    }

    /// Ends an attempt to take a lease of `units`. `answer` is the store's answer to the charge for
    /// the lease, and `sent_at` is the number of store answers that had arrived when that charge
    /// was sent. Returns the outcome of the attempt, and whether the units must be refunded,
    /// because the store counted them in another window or block than that of the lease.
    pub(super) fn end(
        &self,
        account: &Arc<LeaseSubject>,
        units: u64,
        answer: Result<Reading, StoreError>,
        now: Timestamp,
        sent_at: ReplyCount,
    ) -> (LeaseOutcome, bool) {
        let about = Charge {
            limit: &account.limit,
            subject: &account.subject,
            operation: Operation::Peek { cost: Cost::PEEK },
        };
        let ended = self.on(&about, |entry| {
            if !Arc::ptr_eq(&entry.account, account) {
                return None;
            }
            entry.turn = None;
            Some(match &answer {
                Ok(reading) => entry.finish(units, reading, now, sent_at),
                Err(error) => (LeaseOutcome::Failed(*error), false),
            })
        });
        // If a reset removed the entry, the store has discarded these units too.
        ended.flatten().unwrap_or((LeaseOutcome::Refused, false))
    }

    /// Returns the number of store answers received for the limit and subject of `charge`, or
    /// `None` if they have no entry.
    pub(super) fn replies(&self, charge: &Charge<'_>) -> Option<ReplyCount> {
        self.on(charge, |entry| entry.replies())
    }

    /// Processes the store's answer to `charge`. `sent_at` is the number of answers that had
    /// arrived when the charge was sent. `admitted` is the cost that the store charged.
    pub(super) fn learn(
        &self,
        now: Timestamp,
        charge: &Charge<'_>,
        reading: &Reading,
        admitted: Cost,
        sent_at: Option<ReplyCount>,
    ) {
        let learn =
            |entry: &mut LeaseEntry| entry.learn(charge.operation, reading, admitted, now, sent_at);
        let known = self.on(charge, learn);
        let is_charged = admitted.get() > 0 && reading.admission == Admission::Now;
        let is_plain = reading.reserved == 0 && reading.found != StoredState::Discarded;
        if known.is_some() || !is_charged || !is_plain || !self.is_hot(now, charge) {
            return;
        }
        if charge.subject.as_bytes().len() > MAX_SUBJECT_BYTES {
            return;
        }
        let key = self.warm.quota_key(charge);
        let mut shard = self.shard(key).lock();
        if let Some(known) = shard.get_mut(&key) {
            // A concurrent call created the entry. An entry of another definition stays until a
            // sweep has refunded its units.
            if known.is_of(charge.limit) {
                learn(known);
            }
        } else if shard.len() < self.of_shard {
            let (limit, subject) = (charge.limit.clone(), charge.subject.clone());
            let entry = LeaseEntry::of(LeaseSubject { limit, subject }, reading, admitted, now);
            if let Some(entry) = entry {
                shard.insert(key, entry);
            }
        }
    }

    /// Counts a charge and returns whether the charge rate is high enough for a lease.
    fn is_hot(&self, now: Timestamp, charge: &Charge<'_>) -> bool {
        let mut charges = 1;
        self.warm.update(self.warm.quota_key(charge), now, |heat| {
            let heat = heat.filter(|heat| now.since(heat.since) < HOT_WINDOW);
            let heat = heat.unwrap_or(ChargeRate { since: now, charges: 0 });
            charges = heat.charges.saturating_add(1);
            Some(ChargeRate { charges, ..heat })
        });
        charges >= self.config.hot_after
    }

    /// Returns `reading`, the store's reading of a peek, without this node's unused units. Returns
    /// `None` if the status without these units is not known.
    pub(super) fn corrected(
        &self,
        charge: &Charge<'_>,
        reading: &Reading,
        sent_at: Option<ReplyCount>,
    ) -> Option<Reading> {
        self.on(charge, |entry| entry.corrected(reading, sent_at)).unwrap_or(Some(*reading))
    }

    /// Returns refunds of all unused units of the limit and subject of `charge`.
    pub(super) fn all_unused(
        &self,
        now: Timestamp,
        charge: &Charge<'_>,
    ) -> impl Iterator<Item = LeaseRefund> + use<> {
        let unused = self.on(charge, |entry| refunds_of(entry, now));
        unused.into_iter().flatten()
    }

    /// Removes the leases of the limit and subject of `charge`, because the store has reset their
    /// state. The state can have leases under several quotas, such as those of an override and of
    /// a plan. Their keys differ, so all entries are searched; resets are rare.
    pub(super) fn forget(&self, charge: &Charge<'_>) {
        self.resets.fetch_add(1, Ordering::AcqRel);
        let digest = charge.limit.state_digest();
        let is_reset = |account: &LeaseSubject| {
            account.limit.state_digest() == digest && account.subject == *charge.subject
        };
        for shard in &self.shards {
            shard.lock().retain(|_, entry| !is_reset(&entry.account));
        }
    }

    /// Returns refunds of the unused units that exceed the recent usage, for at most `most` limits
    /// and subjects, in the order of limits and subjects. Removes entries without recent charges.
    pub(super) fn surplus(&self, most: usize) -> Vec<LeaseRefund> {
        let mut given = Vec::new();
        for shard in &self.shards {
            shard.lock().retain(|_, entry| {
                if given.len() < most
                    && let Some(operation) = entry.surplus()
                {
                    given.push((Arc::clone(&entry.account), operation));
                }
                !entry.is_abandoned()
            });
        }
        sort(&mut given);
        given
    }

    /// Returns refunds of all unused units that count at `now`, in the order of limits and
    /// subjects.
    pub(super) fn everything(&self, now: Timestamp) -> Vec<LeaseRefund> {
        let mut given = Vec::new();
        for shard in &self.shards {
            let mut entries = shard.lock();
            given.extend(entries.values_mut().flat_map(|entry| refunds_of(entry, now)));
        }
        sort(&mut given);
        given
    }

    /// Returns the time of the latest charge.
    pub(super) fn latest(&self) -> Timestamp {
        let of_shard = |shard: &Mutex<HashMap<Key, LeaseEntry>>| {
            shard.lock().values().map(|entry| entry.seen).max().unwrap_or_default()
        };
        self.shards.iter().map(of_shard).max().unwrap_or_default()
    }

    /// Calls `with` with the entry of the limit and subject of `charge`, and returns its result.
    /// Returns `None` if there is no entry.
    #[inline]
    fn on<T>(&self, charge: &Charge<'_>, with: impl FnOnce(&mut LeaseEntry) -> T) -> Option<T> {
        if charge.limit.mode() == LimitMode::Exact {
            return None;
        }
        let key = self.warm.quota_key(charge);
        let mut shard = self.shard(key).lock();
        shard.get_mut(&key).filter(|entry| entry.is_of(charge.limit)).map(with)
    }

    fn shard(&self, key: Key) -> &Mutex<HashMap<Key, LeaseEntry>> {
        &self.shards[key.part_of(SHARDS)]
    }
}

/// Returns refunds of all unused units of `entry` that count at `now`.
fn refunds_of(entry: &mut LeaseEntry, now: Timestamp) -> impl Iterator<Item = LeaseRefund> + use<> {
    let (account, unused) = (Arc::clone(&entry.account), entry.all_unused(now));
    unused.into_iter().flatten().map(move |operation| (Arc::clone(&account), operation))
}

/// Sorts refunds by limit and subject, because each process has the table in another order.
fn sort(refunds: &mut [LeaseRefund]) {
    refunds.sort_by(|(one, _), (other, _)| {
        let key = |of: &LeaseSubject| of.limit.state_digest();
        key(one).cmp(&key(other)).then_with(|| one.subject.cmp(&other.subject))
    });
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("len", &self.len()).finish_non_exhaustive()
    }
}
