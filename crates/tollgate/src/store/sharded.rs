//! Many stores as one: every subject has one shard.

use std::collections::HashSet;
use std::fmt;

use tollgate_core::{Charge, KeyedHash, Readings, Store, StoreError, Subject, Timestamp};

use super::atomic::Partitions;
use super::rendezvous::{self, WeightedShard};
use crate::hash_key::HashKey;
use crate::trace;

/// The most shards of one map: every decision looks at each.
pub const MAX_SHARDS: usize = 1_024;

/// The largest weight of a shard.
pub const MAX_WEIGHT: u32 = 1 << 20;

/// Spreads subjects over shards; inside of [`Atomic`](super::Atomic) it is a store.
///
/// # What it keeps
/// - Everything that one subject used is on one shard, for all limits whose subjects begin alike
///   (see [`Routing`]). A call on one subject is that shard's own single step.
/// - Nodes that hold the same key, names and weights agree, in whatever order they list the
///   shards. Addresses do not matter: a shard whose primary changes stays the same shard.
/// - Nobody who does not hold the key can choose subjects that all live on one shard.
///
/// # What it weakens
/// - A call whose subjects live on several shards is several steps. By itself this is no
///   [`Store`]; [`Atomic`](super::Atomic) makes such calls all or nothing, and states the cost.
/// - Changing the map moves subjects: a shard that is added takes over its
///   [fair share](Self::fair_share) of all subjects, and no other subject moves. What moved starts
///   afresh: at most one more quota for each of those subjects, once.
pub struct Sharded<S> {
    key: HashKey,
    routing: Routing,
    ranked: Vec<WeightedShard>,
    shards: Vec<Shard<S>>,
}

/// One store of several.
#[derive(Debug)]
pub struct Shard<S> {
    /// What makes it itself: the same on every node, and kept when it moves to another machine.
    pub name: Box<str>,
    /// How much of all subjects it takes, beside the other shards' weights; at least 1.
    pub weight: u32,
    /// Where it is kept.
    pub store: S,
}

/// Which map of shards it is. Shown as sixteen hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapVersion(u64);

impl fmt::Display for MapVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What of a subject says where it lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// Its first pair: limits on `token` and on `token, route` are together.
    #[default]
    First,
    /// The pair of the dimension with this name, or the first of subjects that have none.
    Dimension(Box<str>),
    /// All of it: limits on parts of a subject are spread.
    Whole,
}

impl<S> Sharded<S> {
    /// The shards of a fleet; every node that shares them uses the same `key`.
    ///
    /// # Errors
    /// [`ShardsError`] for none or more than [`MAX_SHARDS`], two of one name, or a weight of zero
    /// or above [`MAX_WEIGHT`].
    pub fn new(
        key: HashKey,
        shards: impl IntoIterator<Item = Shard<S>>,
    ) -> Result<Self, ShardsError> {
        let shards: Vec<_> = shards.into_iter().take(MAX_SHARDS + 1).collect();
        if shards.is_empty() || shards.len() > MAX_SHARDS {
            return Err(ShardsError::Count);
        }
        let mut names = HashSet::new();
        for Shard { name, weight, .. } in &shards {
            if *weight == 0 || *weight > MAX_WEIGHT {
                return Err(ShardsError::Weight { shard: name.clone(), given: *weight });
            }
            if !names.insert(name) {
                return Err(ShardsError::Name(name.clone()));
            }
        }
        let shard = |shard: &Shard<S>| WeightedShard {
            name: name_hash(&key, &shard.name),
            weight: shard.weight,
        };
        let ranked = shards.iter().map(shard).collect();
        Ok(Self { key, routing: Routing::default(), ranked, shards })
    }

    /// Sets what of a subject says where it lives: the same on every node.
    #[must_use]
    pub fn with_routing(mut self, routing: Routing) -> Self {
        self.routing = routing;
        self
    }

    /// A number for this map: equal for maps under which every subject lives on a shard of the same
    /// name.
    #[must_use]
    pub fn version(&self) -> MapVersion {
        let mut shards: Vec<_> =
            self.shards.iter().map(|shard| (&*shard.name, shard.weight)).collect();
        shards.sort_unstable();
        let text = format!("map {shards:?} by {:?}", self.routing);
        MapVersion(halves(self.key.hash(text.as_bytes()))[0])
    }

    /// The shards, in the order in which they were given.
    #[must_use]
    pub fn shards(&self) -> &[Shard<S>] {
        &self.shards
    }

    /// The shard that owns `subject`.
    #[must_use]
    pub fn shard_for(&self, subject: &Subject) -> &Shard<S> {
        &self.shards[self.index_of(subject)]
    }

    /// What part of all subjects lives on the shard of this name: its weight, and all weights.
    ///
    /// As much moves there when it is added to the others, and away when it is removed; the rest
    /// stays. How far one fleet's subjects may be from it is the spread of a fair draw.
    #[must_use]
    pub fn fair_share(&self, name: &str) -> Option<(u64, u64)> {
        let weight = |shard: &Shard<S>| u64::from(shard.weight);
        let shard = self.shards.iter().find(|shard| &*shard.name == name)?;
        Some((weight(shard), self.shards.iter().map(weight).sum()))
    }

    fn index_of(&self, subject: &Subject) -> usize {
        if self.ranked.len() == 1 {
            return 0;
        }
        let routed = self.routing.part_of(subject);
        rendezvous::owner(&self.ranked, halves(self.key.hash(routed)))
    }
}

impl<S: Store> Partitions for Sharded<S> {
    fn partition(&self, subject: &Subject) -> usize {
        self.index_of(subject)
    }

    async fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let Shard { name, store, .. } = &self.shards[partition];
        if !trace::is_recording() {
            return store.apply(now, charges).await;
        }
        // Boxed, so that what is seldom recorded makes no call larger.
        let called = Box::pin(async {
            trace::record("tollgate.shard", name.to_string());
            trace::record("tollgate.charges", i64::try_from(charges.len()).unwrap_or(i64::MAX));
            let answered = store.apply(now, charges).await;
            match &answered {
                Ok(_) => trace::record("tollgate.outcome", "answered"),
                Err(error) => {
                    trace::record("tollgate.outcome", error_word(*error));
                    trace::record_failure(error.to_string());
                }
            }
            answered
        });
        trace::child(trace::SpanKind::Client, "shard").run(called).await
    }
}

const fn error_word(error: StoreError) -> &'static str {
    match error {
        StoreError::Full => "full",
        StoreError::TimedOut => "timed_out",
        StoreError::Corrupt => "corrupt",
        _ => "unavailable",
    }
}

impl Routing {
    pub(super) fn part_of<'a>(&self, subject: &'a Subject) -> &'a [u8] {
        let first = || subject.encodings().next();
        let pair = match self {
            Self::Whole => return subject.as_bytes(),
            Self::First => first(),
            Self::Dimension(name) => {
                subject.encodings().find(|(named, _)| *named == &**name).or_else(first)
            }
        };
        pair.map_or(&[], |(_, encoding)| encoding)
    }
}

impl<S> fmt::Debug for Sharded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.shards.iter().map(|shard| &shard.name).collect::<Vec<_>>();
        f.debug_struct("Sharded").field("shards", &names).finish_non_exhaustive()
    }
}

/// Why shards cannot be a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardsError {
    /// There is none, or more than [`MAX_SHARDS`].
    Count,
    /// Two have this name.
    Name(Box<str>),
    /// A weight is zero or above [`MAX_WEIGHT`].
    Weight {
        /// The shard's name.
        shard: Box<str>,
        /// The weight that was given.
        given: u32,
    },
}

impl fmt::Display for ShardsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => write!(f, "name between 1 and {MAX_SHARDS} shards"),
            Self::Name(name) => {
                write!(f, "two shards are named {name:?}: give each a name of its own")
            }
            Self::Weight { shard, given } => {
                write!(f, "the weight {given} of shard {shard:?} must be 1 to {MAX_WEIGHT}")
            }
        }
    }
}

impl std::error::Error for ShardsError {}

fn name_hash(key: &HashKey, name: &str) -> [u64; 2] {
    // Set apart from what the same key says of subjects.
    halves(key.hash(&[b"shard ", name.as_bytes()].concat()))
}

fn halves(hash: [u8; 16]) -> [u64; 2] {
    let hash = u128::from_le_bytes(hash);
    [hash as u64, (hash >> 64) as u64]
}
