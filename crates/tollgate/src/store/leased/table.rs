//! The leases of a node: bounded, and found by limit and subject.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tollgate_core::{
    Ask, Charge, Cost, Fit, Found, LimitMode, Mark, Reading, StoreError, Timestamp,
};

use super::slot::{Account, Heard, Hearing, Slot, Turn};
use super::terms::{HOT_WITHIN, LeaseTerms};
use crate::store::recent::{Key, Recent, Worth};

/// Leases that share a lock are one in so many.
const SHARDS: usize = 16;

/// Subjects that are longer have no leases, so that the table's size in bytes has a bound.
pub const LONGEST_SUBJECT: usize = 1_024;

/// What gives units back, and of whom.
pub(super) type GivenBack = (Arc<Account>, Ask);

/// The slots of a node, and how often others were charged lately.
pub(super) struct Table {
    terms: LeaseTerms,
    warm: Recent<Heat>,
    shards: Box<[Mutex<HashMap<Key, Slot>>]>,
    of_shard: usize,
}

/// How often a limit and subject without a lease were charged.
#[derive(Clone, Copy)]
struct Heat {
    since: Timestamp,
    charges: u32,
}

impl Worth for Heat {
    /// What was charged last stays.
    fn worth(&self, _now: Timestamp) -> u64 {
        self.since.as_millis()
    }
}

/// What is to be done before a charge that nothing here covers.
pub(super) enum Begin {
    /// Nothing: it is covered, or for the store.
    Nothing,
    /// Somebody takes a lease.
    Wait(Hearing),
    /// A lease of so many units is to be taken, and everybody told.
    Take {
        account: Arc<Account>,
        units: u64,
        asked: Heard,
        tell: watch::Sender<Option<Turn>>,
        hear: Hearing,
    },
}

impl Table {
    pub(super) fn new(leases: usize, terms: LeaseTerms) -> Self {
        Self {
            terms,
            warm: Recent::new(leases),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            of_shard: leases.div_ceil(SHARDS),
        }
    }

    pub(super) const fn terms(&self) -> &LeaseTerms {
        &self.terms
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
        self.on(charge, |slot| slot.answer(charge.ask, now, &self.terms))?
    }

    /// Undoes a take that was answered here with this mark.
    pub(super) fn put_back(&self, charge: &Charge<'_>, mark: Mark) -> Option<Reading> {
        self.on(charge, |slot| slot.put_back(charge.ask.cost(), mark))?
    }

    /// What is to be done before `charge` is carried out at `now`. One at a time takes.
    pub(super) fn begin(&self, now: Timestamp, charge: &Charge<'_>) -> Begin {
        let Ask::Take { cost, .. } = charge.ask else { return Begin::Nothing };
        let begun = self.on(charge, |slot| {
            // One whose task ended without a word is no turn any more.
            slot.turn.take_if(|turn| turn.has_changed().is_err());
            if let Some(turn) = &slot.turn {
                return Begin::Wait(turn.clone());
            }
            let Some(units) = slot.wanted(cost, now, &self.terms) else { return Begin::Nothing };
            let (tell, hear) = watch::channel(None);
            slot.turn = Some(hear.clone());
            let (account, asked) = (Arc::clone(&slot.account), slot.heard());
            Begin::Take { account, units, asked, tell, hear }
        });
        begun.unwrap_or(Begin::Nothing)
    }

    /// Ends a turn: what became of it, and whether the units are to be given back where they are.
    pub(super) fn end(
        &self,
        account: &Arc<Account>,
        units: u64,
        answer: Result<Reading, StoreError>,
        now: Timestamp,
        asked: Heard,
    ) -> (Turn, bool) {
        let about = Charge {
            limit: &account.limit,
            subject: &account.subject,
            ask: Ask::Look { cost: Cost::PEEK },
        };
        let ended = self.on(&about, |slot| {
            if !Arc::ptr_eq(&slot.account, account) {
                return None;
            }
            slot.turn = None;
            Some(match &answer {
                Ok(reading) => slot.took(units, reading, now, asked),
                Err(error) => (Turn::Failed(*error), false),
            })
        });
        // Whose place is gone was forgotten, and with it what was taken there.
        ended.flatten().unwrap_or((Turn::Refused, false))
    }

    /// How many answers of the store about what `charge` is about have been heard by now.
    pub(super) fn heard(&self, charge: &Charge<'_>) -> Option<Heard> {
        self.on(charge, |slot| slot.heard())
    }

    /// Hears what the store answered to `charge`, which was passed on at `asked`, and what it took
    /// for it.
    pub(super) fn learn(
        &self,
        now: Timestamp,
        charge: &Charge<'_>,
        reading: &Reading,
        admitted: Cost,
        asked: Option<Heard>,
    ) {
        let learn = |slot: &mut Slot| slot.learn(charge.ask, reading, admitted, now, asked);
        let known = self.on(charge, learn);
        let is_charged = admitted.get() > 0 && reading.fit == Fit::Now;
        let is_plain = reading.held == 0 && reading.found != Found::Discarded;
        if known.is_some() || !is_charged || !is_plain || !self.is_hot(now, charge) {
            return;
        }
        if charge.subject.as_bytes().len() > LONGEST_SUBJECT {
            return;
        }
        let account = Account { limit: charge.limit.clone(), subject: charge.subject.clone() };
        let Some(slot) = Slot::of(account, reading, admitted, now) else { return };
        let key = self.warm.key(charge);
        let mut shard = self.shard(key).lock();
        if shard.len() < self.of_shard || shard.contains_key(&key) {
            shard.insert(key, slot);
        }
    }

    /// Counts a charge; whether it is one of many in a short time.
    fn is_hot(&self, now: Timestamp, charge: &Charge<'_>) -> bool {
        let mut charges = 1;
        self.warm.update(self.warm.key(charge), now, |heat| {
            let heat = heat.filter(|heat| now.since(heat.since) < HOT_WITHIN);
            let heat = heat.unwrap_or(Heat { since: now, charges: 0 });
            charges = heat.charges.saturating_add(1);
            Some(Heat { charges, ..heat })
        });
        charges >= self.terms.hot_after
    }

    /// The reading of who only looked, without the units that are unused here.
    pub(super) fn corrected(
        &self,
        charge: &Charge<'_>,
        reading: &Reading,
        asked: Option<Heard>,
    ) -> Option<Reading> {
        self.on(charge, |slot| slot.corrected(reading, asked)).unwrap_or(Some(*reading))
    }

    /// What gives back all that is unused of what `charge` is about.
    pub(super) fn all_unused(&self, now: Timestamp, charge: &Charge<'_>) -> Option<GivenBack> {
        self.on(charge, |slot| Some((Arc::clone(&slot.account), slot.all_unused(now)?)))?
    }

    /// Forgets what is unused of what `charge` is about: the store has forgotten it as well.
    pub(super) fn forget(&self, charge: &Charge<'_>) {
        let key = self.warm.key(charge);
        self.shard(key).lock().remove(&key);
    }

    /// What gives back what is unused beyond what was used lately, of `most` at most. Who was not
    /// asked about for long has no place any more.
    pub(super) fn superfluous(&self, most: usize) -> Vec<GivenBack> {
        let mut given = Vec::new();
        for shard in &self.shards {
            shard.lock().retain(|_, slot| {
                if given.len() < most
                    && let Some(ask) = slot.superfluous()
                {
                    given.push((Arc::clone(&slot.account), ask));
                }
                !slot.is_abandoned()
            });
        }
        given
    }

    /// What gives back all that is unused and counts at `now`.
    pub(super) fn everything(&self, now: Timestamp) -> Vec<GivenBack> {
        let mut given = Vec::new();
        for shard in &self.shards {
            let mut slots = shard.lock();
            let unused = slots
                .values_mut()
                .filter_map(|slot| Some((Arc::clone(&slot.account), slot.all_unused(now)?)));
            given.extend(unused);
        }
        given
    }

    /// The latest moment at which anything was charged.
    pub(super) fn latest(&self) -> Timestamp {
        let of_shard = |shard: &Mutex<HashMap<Key, Slot>>| {
            shard.lock().values().map(|slot| slot.seen).max().unwrap_or_default()
        };
        self.shards.iter().map(of_shard).max().unwrap_or_default()
    }

    /// Does something with the slot that `charge` is about, if there is one.
    #[inline]
    fn on<T>(&self, charge: &Charge<'_>, with: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        if charge.limit.mode() == LimitMode::Exact {
            return None;
        }
        let key = self.warm.key(charge);
        let mut shard = self.shard(key).lock();
        shard.get_mut(&key).filter(|slot| slot.is_of(charge.limit)).map(with)
    }

    fn shard(&self, key: Key) -> &Mutex<HashMap<Key, Slot>> {
        &self.shards[key.part_of(SHARDS)]
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("len", &self.len()).finish_non_exhaustive()
    }
}
