//! Several stores that act as one store. Every subject belongs to one of them, its shard.

use std::collections::HashSet;
use std::fmt;

use tollgate_core::{Charge, KeyedHash, Readings, Store, StoreError, Subject, Timestamp};

use super::atomic::Partitions;
use super::rendezvous::{self, WeightedShard};
use tollgate::hash_key::HashKey;
use tollgate::trace;

/// The maximum number of shards in one map. Every decision computes a score for each shard.
pub const MAX_SHARDS: usize = 1_024;

/// The largest weight of a shard.
pub const MAX_WEIGHT: u32 = 1 << 20;

/// A map of shards, over which the subjects are distributed. [`Atomic`](super::Atomic) turns the
/// map into a [`Store`].
///
/// # Guarantees
/// - All usage of a subject is on one shard, for all limits with subjects that have the same first
///   pair (see [`Routing`]). A call on one subject is a single step of that shard.
/// - Nodes with the same key, names and weights agree on the map, in whatever order they list the
///   shards. Addresses do not matter: a shard keeps its identity when its primary changes.
/// - Without the key, clients cannot choose subjects that all belong to one shard.
///
/// # Limitations
/// - A call with subjects that belong to several shards takes several steps. So `Sharded` alone is
///   not a [`Store`]. [`Atomic`](super::Atomic) makes such calls all or nothing and documents the
///   cost.
/// - Changing the map moves subjects: a new shard receives its [fair share](Self::fair_share) of
///   all subjects, and no other subject moves. A moved subject starts with unused limits and can
///   use at most one additional quota, once.
pub struct Sharded<S> {
    key: HashKey,
    routing: Routing,
    ranked: Vec<WeightedShard>,
    shards: Vec<Shard<S>>,
}

/// One of the stores over which subjects are distributed.
#[derive(Debug)]
pub struct Shard<S> {
    /// The identity of the shard. Every node uses the same name, and the shard keeps its name when
    /// it moves to another machine.
    pub name: Box<str>,
    /// The weight of the shard, at least 1. The shard's share of all subjects is this weight
    /// divided by the sum of all weights.
    pub weight: u32,
    /// The store that keeps the shard's counters.
    pub store: S,
}

/// The version of a shard map. The version is displayed as sixteen hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapVersion(u64);

impl fmt::Display for MapVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The part of a subject that selects its shard. A subject is a list of pairs of a name, such as
/// `token`, and a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// The first pair. For example, limits on `token` and limits on `token, route` share a shard.
    #[default]
    First,
    /// The pair with this name. If the subject has no pair with this name, the first pair.
    Dimension(Box<str>),
    /// The whole subject: limits on different parts of a subject are spread over the shards.
    Subject,
}

impl<S> Sharded<S> {
    /// Creates a map of `shards`. Every node that shares these shards must use the same `key`.
    ///
    /// # Errors
    /// [`ShardsError`] if there are no shards or more than [`MAX_SHARDS`], if two shards have the
    /// same name, or if a weight is zero or above [`MAX_WEIGHT`].
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

    /// Sets the part of a subject that selects its shard. Every node must use the same `routing`.
    #[must_use]
    pub fn with_routing(mut self, routing: Routing) -> Self {
        self.routing = routing;
        self
    }

    /// Returns the version of this map. Two maps have the same version if both assign every subject
    /// to a shard of the same name.
    #[must_use]
    pub fn version(&self) -> MapVersion {
        let mut shards: Vec<_> =
            self.shards.iter().map(|shard| (&*shard.name, shard.weight)).collect();
        shards.sort_unstable();
        let text = format!("map {shards:?} by {:?}", self.routing);
        MapVersion(halves(self.key.hash(text.as_bytes()))[0])
    }

    /// Returns the shards in the order in which they were given.
    #[must_use]
    pub fn shards(&self) -> &[Shard<S>] {
        &self.shards
    }

    /// Returns the shard that owns `subject`.
    #[must_use]
    pub fn shard_for(&self, subject: &Subject) -> &Shard<S> {
        &self.shards[self.index_of(subject)]
    }

    /// Returns the expected share of all subjects on the shard `name`, as the weight of the shard
    /// and the sum of all weights. Returns `None` if no shard has this name.
    ///
    /// When the shard is added, this share of the subjects moves to the shard. When the shard is
    /// removed, the share moves away. All other subjects stay on their shards. The actual share
    /// differs from the expected share by the deviation of a fair random draw.
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
        // The future is boxed because trace spans are recorded rarely and must not make the future
        // of every call larger.
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
            Self::Subject => return subject.as_bytes(),
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

/// The reason why a shard map is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardsError {
    /// There are no shards, or more than [`MAX_SHARDS`].
    Count,
    /// Two shards have this name.
    Name(Box<str>),
    /// A weight is zero or above [`MAX_WEIGHT`].
    Weight {
        /// The shard's name.
        shard: Box<str>,
        /// The invalid weight.
        given: u32,
    },
}

impl fmt::Display for ShardsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => write!(f, "configure 1 to {MAX_SHARDS} shards"),
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
    // The prefix separates the hashes of shard names from the hashes of subjects.
    halves(key.hash(&[b"shard ", name.as_bytes()].concat()))
}

fn halves(hash: [u8; 16]) -> [u64; 2] {
    let hash = u128::from_le_bytes(hash);
    [hash as u64, (hash >> 64) as u64]
}
