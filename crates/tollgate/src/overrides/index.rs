//! The overrides in force, indexed by target.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tollgate_core::key::Stored;
use tollgate_core::policy::Network;
use tollgate_core::{KeyedHash, Limit, Subject, Timestamp};

use super::table::OverrideTable;
use super::{Effect, Override, OverrideTarget, in_order};

/// The overrides that are in force on this node.
///
/// A lookup makes no call to another process. While there are no overrides, a lookup costs one
/// relaxed load. Otherwise a lookup costs a keyed hash of each value of the subject, and one table
/// lookup for the subject, for each of the subject's values, and for each prefix length of the
/// networks that have an override.
#[derive(Default)]
pub struct Overrides {
    /// Whether there are any overrides. If this flag is false, a lookup reads nothing else.
    any: AtomicBool,
    index: ArcSwap<Index>,
    /// A lock that is held while a new table is made from the table in force, so no change is lost.
    changing: Mutex<()>,
}

/// The effect of an override on a limit.
#[derive(Clone, Debug)]
pub(crate) enum ResolvedOverride {
    /// The given limit replaces the policy's limit.
    Limit(Arc<Limit>),
    /// The limit does not apply to the subject.
    Unlimited,
    /// Every request is refused until the given time.
    Blocked(Timestamp),
    /// The limit counts the request and does not refuse it.
    Counted,
}

impl Overrides {
    /// Returns the table of the overrides that are in force.
    #[must_use]
    pub fn table(&self) -> Arc<OverrideTable> {
        Arc::clone(&self.index.load().table)
    }

    /// Replaces the table in force by `table`.
    pub fn set(&self, table: Arc<OverrideTable>) {
        let _changing = self.changing.lock();
        self.install(table);
    }

    /// Replaces the table in force by the table that `make` creates from the table in force.
    /// Concurrent updates run one after the other.
    pub(super) fn update<T, E>(
        &self,
        make: impl FnOnce(&OverrideTable) -> Result<(T, Arc<OverrideTable>), E>,
    ) -> Result<T, E> {
        let _changing = self.changing.lock();
        let (resolved, table) = make(&self.index.load().table)?;
        self.install(table);
        Ok(resolved)
    }

    fn install(&self, table: Arc<OverrideTable>) {
        let any = !table.overrides().is_empty();
        self.index.store(Arc::new(Index::of(table)));
        self.any.store(any, Ordering::Release);
    }

    /// Returns the override that applies to `limit` and `subject` at `now`, or `None` if there is
    /// no such override. `key` hashes the values of the subject.
    #[must_use]
    pub fn find(
        &self,
        limit: &Limit,
        subject: &Subject,
        key: &(impl KeyedHash + ?Sized),
        now: Timestamp,
    ) -> Option<Arc<Override>> {
        if self.is_empty() {
            return None;
        }
        let index = self.index.load();
        Some(Arc::clone(&index.find(limit, subject, key, now)?.definition))
    }

    /// Returns the kill switch of `limit` at `now`: the override of `limit` for everybody.
    #[must_use]
    pub fn switch_of(&self, limit: &Limit, now: Timestamp) -> Option<Arc<Override>> {
        best(&self.index.load().all_subjects, limit, now).map(|entry| Arc::clone(&entry.definition))
    }

    /// Returns the override of a rule or of load shedding that is in force at `now` and whose
    /// target `is_meant` accepts, or `None` if there is no such override. If several overrides
    /// match, returns the override that was set last.
    pub(super) fn switch(
        &self,
        now: Timestamp,
        is_meant: impl Fn(&OverrideTarget) -> bool,
    ) -> Option<Arc<Override>> {
        if self.is_empty() {
            return None;
        }
        let index = self.index.load();
        let lasting = index.switches.iter().filter(|definition| now < definition.expires_at);
        lasting.rev().find(|definition| is_meant(&definition.target.target)).cloned()
    }

    /// Returns whether there are no overrides, by one relaxed load.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Returns the override of `limit` for `subject` at `now`, and the effect of this override.
    /// Returns `None` if there is no such override.
    pub(crate) fn resolve(
        &self,
        limit: &Arc<Limit>,
        subject: &Subject,
        key: &(impl KeyedHash + ?Sized),
        now: Timestamp,
    ) -> Option<(ResolvedOverride, Arc<Override>)> {
        if self.is_empty() {
            return None;
        }
        let index = self.index.load();
        let entry = index.find(limit, subject, key, now)?;
        Some((entry.rule(limit)?, Arc::clone(&entry.definition)))
    }
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table();
        let (version, count) = (table.version(), table.overrides().len());
        f.debug_struct("Overrides").field("version", &version).field("count", &count).finish()
    }
}

/// An override, and the limit that was last created from the override.
#[derive(Debug)]
struct Entry {
    definition: Arc<Override>,
    /// The policy's limit, and its replacement. The replacement is `None` if the limit cannot count
    /// the override's quota.
    resolved: ArcSwapOption<(Arc<Limit>, Option<Arc<Limit>>)>,
}

impl Entry {
    fn rule(&self, limit: &Arc<Limit>) -> Option<ResolvedOverride> {
        let (quota, burst) = match self.definition.effect {
            Effect::Unlimited => return Some(ResolvedOverride::Unlimited),
            Effect::Blocked => return Some(ResolvedOverride::Blocked(self.definition.expires_at)),
            Effect::Counted => return Some(ResolvedOverride::Counted),
            Effect::Quota { quota, burst } => (quota, burst),
        };
        // The entry keeps its limit alive, so no other limit can have the same address.
        if let Some(resolved) = &*self.resolved.load()
            && Arc::ptr_eq(&resolved.0, limit)
        {
            return resolved.1.clone().map(ResolvedOverride::Limit);
        }
        let resolved = limit.with_quota(quota, burst).ok().map(Arc::new);
        self.resolved.store(Some(Arc::new((Arc::clone(limit), resolved.clone()))));
        resolved.map(ResolvedOverride::Limit)
    }
}

/// The overrides in force, in one map or list for each kind of target. If a target has several
/// overrides, the overrides are for different limits.
#[derive(Debug, Default)]
struct Index {
    table: Arc<OverrideTable>,
    /// The overrides of single subjects, by the bytes of the veiled subject.
    subjects: HashMap<Box<[u8]>, Vec<Arc<Entry>>>,
    /// The overrides of values, by the bytes of the veiled pair of name and value.
    values: HashMap<Box<[u8]>, Vec<Arc<Entry>>>,
    networks: HashMap<Box<str>, Networks>,
    all_subjects: Vec<Arc<Entry>>,
    /// Overrides of rules and of load shedding.
    switches: Vec<Arc<Override>>,
}

/// The overrides of networks for one name in the subjects' pairs, such as `ip`.
#[derive(Debug, Default)]
struct Networks {
    /// The prefix lengths in use. A lookup tries only these prefix lengths.
    lengths: BTreeSet<u8>,
    entries: HashMap<Network, Vec<Arc<Entry>>>,
}

impl Index {
    fn of(table: Arc<OverrideTable>) -> Self {
        let mut index = Self::default();
        for definition in table.overrides() {
            let entry =
                Entry { definition: Arc::clone(definition), resolved: ArcSwapOption::empty() };
            let entries = match &definition.target.target {
                OverrideTarget::Subject(subject) => index.subjects.entry(subject.as_bytes().into()),
                OverrideTarget::Value(pair) => index.values.entry(pair.as_bytes().into()),
                OverrideTarget::Network { dimension, network } => {
                    let networks = index.networks.entry(dimension.clone()).or_default();
                    networks.lengths.insert(network.prefix());
                    networks.entries.entry(*network).or_default().push(Arc::new(entry));
                    continue;
                }
                OverrideTarget::AllSubjects => {
                    index.all_subjects.push(Arc::new(entry));
                    continue;
                }
                OverrideTarget::Rule(_) | OverrideTarget::Shedding(_) => {
                    index.switches.push(Arc::clone(definition));
                    continue;
                }
            };
            entries.or_default().push(Arc::new(entry));
        }
        index.table = table;
        index
    }

    fn find(
        &self,
        limit: &Limit,
        subject: &Subject,
        key: &(impl KeyedHash + ?Sized),
        now: Timestamp,
    ) -> Option<&Arc<Entry>> {
        if !self.subjects.is_empty() || !self.values.is_empty() {
            let veiled = subject.veiled(key);
            let subject = self.subjects.get(in_order(&veiled).as_bytes());
            let by_subject = subject.and_then(|entries| best(entries, limit, now));
            let mut pairs = veiled.encodings();
            let mut by_value =
                || pairs.find_map(|(_, pair)| best(self.values.get(pair)?, limit, now));
            if let Some(found) = by_subject.or_else(&mut by_value) {
                return Some(found);
            }
        }
        let by_network = self.networks_of(subject).find_map(|entries| best(entries, limit, now));
        by_network.or_else(|| best(&self.all_subjects, limit, now))
    }

    /// Returns the overrides of networks that contain `subject`, the smallest network first.
    fn networks_of(&self, subject: &Subject) -> impl Iterator<Item = &Vec<Arc<Entry>>> {
        let pairs = (!self.networks.is_empty()).then(|| subject.pairs()).into_iter().flatten();
        pairs.flat_map(|(name, stored)| {
            let found = self.networks.get(name).zip(network(stored));
            found.into_iter().flat_map(|(networks, own)| {
                let wider = networks.lengths.iter().rev().filter_map(move |bits| own.within(*bits));
                wider.filter_map(|network| networks.entries.get(&network))
            })
        })
    }
}

/// Parses a value as a network. Returns `None` if the value is neither an address nor a network.
fn network(stored: Stored<'_>) -> Option<Network> {
    let Stored::Clear(bytes) = stored else { return None };
    Network::parse(std::str::from_utf8(bytes).ok()?).ok()
}

/// Returns the override of `limit` that is in force at `now` among the overrides of one target. If
/// `limit` has no override of its own, returns the override of all limits, if there is one.
fn best<'e>(entries: &'e [Arc<Entry>], limit: &Limit, now: Timestamp) -> Option<&'e Arc<Entry>> {
    let lasting = entries.iter().filter(|entry| {
        now < entry.definition.expires_at && entry.definition.target.applies_to(limit)
    });
    lasting.max_by_key(|entry| entry.definition.target.limit.is_some())
}
