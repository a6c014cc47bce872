//! The stores in which the counters of a world are.

use std::fmt;

use tollgate_conformance::Random;

use super::Kind;

/// The store in which the counters of a world are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Shards of Redis servers.
    Redis,
    /// A Redis Cluster.
    Cluster,
    /// memcached servers.
    Memcached,
}

impl StoreKind {
    /// Returns the store of a world of the given kind.
    pub(super) fn of(kind: Kind, random: &mut Random) -> Self {
        match kind {
            Kind::Cluster => Self::Cluster,
            Kind::Memcached => Self::Memcached,
            Kind::Overrides => {
                random.one_of(&[Self::Redis, Self::Redis, Self::Cluster, Self::Memcached])
            }
            Kind::ServerClocks => {
                random.one_of(&[Self::Redis, Self::Redis, Self::Cluster, Self::Memcached])
            }
            Kind::Overload => random.one_of(&[Self::Redis, Self::Redis, Self::Cluster]),
            _ => Self::Redis,
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "Redis",
            Self::Cluster => "a Redis Cluster",
            Self::Memcached => "memcached",
        })
    }
}
