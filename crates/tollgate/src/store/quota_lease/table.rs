//! The leases of a node: bounded, and found by limit and subject.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tollgate_core::{
    Admission, Charge, ChargePosition, Cost, LimitMode, Operation, Reading, StoreError,
    StoredState, Timestamp,
};

use super::config::{HOT_WINDOW, LeaseConfig};
use super::entry::{LeaseEntry, LeaseOutcome, LeaseReceiver, LeaseSubject, ReplyCount};
use crate::store::bounded_cache::{BoundedCache, EvictionPriority, Key};

/// Leases that share a lock are one in so many.
const SHARDS: usize = 16;

/// Subjects that are longer have no leases, so that the table's size in bytes has a bound.
pub const MAX_SUBJECT_BYTES: usize = 1_024;

/// What gives units back, and of whom.
pub(super) type LeaseRefund = (Arc<LeaseSubject>, Operation);

/// The entries of a node, and how often others were charged lately.
pub(super) struct Table {
    config: LeaseConfig,
    warm: BoundedCache<ChargeRate>,
    shards: Box<[Mutex<HashMap<Key, LeaseEntry>>]>,
    of_shard: usize,
}

/// How often a limit and subject without a lease were charged.
#[derive(Clone, Copy)]
struct ChargeRate {
    since: Timestamp,
    charges: u32,
}

impl EvictionPriority for ChargeRate {
    /// What was charged last stays.
    fn eviction_priority(&self, _now: Timestamp) -> u64 {
        self.since.as_millis()
    }
}

/// What is to be done before a charge that nothing here covers.
pub(super) enum LeaseStep {
    /// Nothing: it is covered, or for the store.
    Nothing,
    /// Somebody takes a lease.
    Wait(LeaseReceiver),
    /// A lease of so many units is to be taken, and everybody told.
    Take {
        account: Arc<LeaseSubject>,
        units: u64,
        asked: ReplyCount,
        tell: watch::Sender<Option<LeaseOutcome>>,
        hear: LeaseReceiver,
    },
}

impl Table {
    pub(super) fn new(leases: usize, config: LeaseConfig) -> Self {
        Self {
            config,
            warm: BoundedCache::new(leases),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            of_shard: leases.div_ceil(SHARDS),
        }
    }

    pub(super) const fn config(&self) -> &LeaseConfig {
        &self.config
    }

    pub(super) const fn capacity(&self) -> usize {
        self.of_shard * SHARDS
    }

    /// The limits and subjects that have a place here, and the units that are unused of them.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Carries `charge` out with what this node has; `None` where the store has to be asked.
    #[inline]
    pub(super) fn answer(&self, now: Timestamp, charge: &Charge<'_>) -> Option<Reading> {
        self.on(charge, |entry| entry.answer(charge.operation, now, &self.config))?
    }

    /// Undoes a take that was answered here with this mark.
    pub(super) fn undo_take(
        &self,
        charge: &Charge<'_>,
        position: ChargePosition,
    ) -> Option<Reading> {
        self.on(charge, |entry| entry.undo_take(charge.operation.cost(), position))?
    }

    /// What is to be done before `charge` is carried out at `now`. One at a time takes.
    pub(super) fn begin(&self, now: Timestamp, charge: &Charge<'_>) -> LeaseStep {
        let Operation::Charge { cost, .. } = charge.operation else { return LeaseStep::Nothing };
        let begun = self.on(charge, |entry| {
            // One whose task ended without a word is no turn any more.
            entry.turn.take_if(|turn| turn.has_changed().is_err());
            if let Some(turn) = &entry.turn {
                return LeaseStep::Wait(turn.clone());
            }
            let Some(units) = entry.wanted(cost, now, &self.config) else {
                return LeaseStep::Nothing;
            };
            let (tell, hear) = watch::channel(None);
            entry.turn = Some(hear.clone());
            let (account, asked) = (Arc::clone(&entry.account), entry.replies());
            LeaseStep::Take { account, units, asked, tell, hear }
        });
        begun.unwrap_or(LeaseStep::Nothing)
    }

    /// Ends a turn: what became of it, and whether the units are to be given back where they are.
    pub(super) fn end(
        &self,
        account: &Arc<LeaseSubject>,
        units: u64,
        answer: Result<Reading, StoreError>,
        now: Timestamp,
        asked: ReplyCount,
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
                Ok(reading) => entry.finish(units, reading, now, asked),
                Err(error) => (LeaseOutcome::Failed(*error), false),
            })
        });
        // Whose place is gone was forgotten, and with it what was taken there.
        ended.flatten().unwrap_or((LeaseOutcome::Refused, false))
    }

    /// How many answers of the store about what `charge` is about have been heard by now.
    pub(super) fn replies(&self, charge: &Charge<'_>) -> Option<ReplyCount> {
        self.on(charge, |entry| entry.replies())
    }

    /// Hears what the store answered to `charge`, which was passed on at `asked`, and what it took
    /// for it.
    pub(super) fn learn(
        &self,
        now: Timestamp,
        charge: &Charge<'_>,
        reading: &Reading,
        admitted: Cost,
        asked: Option<ReplyCount>,
    ) {
        let learn =
            |entry: &mut LeaseEntry| entry.learn(charge.operation, reading, admitted, now, asked);
        let known = self.on(charge, learn);
        let is_charged = admitted.get() > 0 && reading.admission == Admission::Now;
        let is_plain = reading.reserved == 0 && reading.found != StoredState::Discarded;
        if known.is_some() || !is_charged || !is_plain || !self.is_hot(now, charge) {
            return;
        }
        if charge.subject.as_bytes().len() > MAX_SUBJECT_BYTES {
            return;
        }
        let account = LeaseSubject { limit: charge.limit.clone(), subject: charge.subject.clone() };
        let Some(entry) = LeaseEntry::of(account, reading, admitted, now) else { return };
        let key = self.warm.key(charge);
        let mut shard = self.shard(key).lock();
        if shard.len() < self.of_shard || shard.contains_key(&key) {
            shard.insert(key, entry);
        }
    }

    /// Counts a charge; whether it is one of many in a short time.
    fn is_hot(&self, now: Timestamp, charge: &Charge<'_>) -> bool {
        let mut charges = 1;
        self.warm.update(self.warm.key(charge), now, |heat| {
            let heat = heat.filter(|heat| now.since(heat.since) < HOT_WINDOW);
            let heat = heat.unwrap_or(ChargeRate { since: now, charges: 0 });
            charges = heat.charges.saturating_add(1);
            Some(ChargeRate { charges, ..heat })
        });
        charges >= self.config.hot_after
    }

    /// The reading of who only looked, without the units that are unused here.
    pub(super) fn corrected(
        &self,
        charge: &Charge<'_>,
        reading: &Reading,
        asked: Option<ReplyCount>,
    ) -> Option<Reading> {
        self.on(charge, |entry| entry.corrected(reading, asked)).unwrap_or(Some(*reading))
    }

    /// What gives back all that is unused of what `charge` is about.
    pub(super) fn all_unused(&self, now: Timestamp, charge: &Charge<'_>) -> Option<LeaseRefund> {
        self.on(charge, |entry| Some((Arc::clone(&entry.account), entry.all_unused(now)?)))?
    }

    /// Forgets what is unused of what `charge` is about: the store has forgotten it as well.
    pub(super) fn forget(&self, charge: &Charge<'_>) {
        let key = self.warm.key(charge);
        self.shard(key).lock().remove(&key);
    }

    /// What gives back what is unused beyond what was used lately, of `most` at most. Who was not
    /// asked about for long has no place any more.
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
        given
    }

    /// What gives back all that is unused and counts at `now`.
    pub(super) fn everything(&self, now: Timestamp) -> Vec<LeaseRefund> {
        let mut given = Vec::new();
        for shard in &self.shards {
            let mut entries = shard.lock();
            let unused = entries
                .values_mut()
                .filter_map(|entry| Some((Arc::clone(&entry.account), entry.all_unused(now)?)));
            given.extend(unused);
        }
        given
    }

    /// The latest moment at which anything was charged.
    pub(super) fn latest(&self) -> Timestamp {
        let of_shard = |shard: &Mutex<HashMap<Key, LeaseEntry>>| {
            shard.lock().values().map(|entry| entry.seen).max().unwrap_or_default()
        };
        self.shards.iter().map(of_shard).max().unwrap_or_default()
    }

    /// Does something with the entry that `charge` is about, if there is one.
    #[inline]
    fn on<T>(&self, charge: &Charge<'_>, with: impl FnOnce(&mut LeaseEntry) -> T) -> Option<T> {
        if charge.limit.mode() == LimitMode::Exact {
            return None;
        }
        let key = self.warm.key(charge);
        let mut shard = self.shard(key).lock();
        shard.get_mut(&key).filter(|entry| entry.is_of(charge.limit)).map(with)
    }

    fn shard(&self, key: Key) -> &Mutex<HashMap<Key, LeaseEntry>> {
        &self.shards[key.part_of(SHARDS)]
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("len", &self.len()).finish_non_exhaustive()
    }
}
