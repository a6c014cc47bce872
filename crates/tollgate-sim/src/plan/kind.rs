//! The kinds of worlds.

use std::fmt;

/// The kind of a world. Each kind has its own faults and its own bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing fails.
    Healthy,
    /// A round trip takes more than half of a decision's deadline, and many decisions are in flight.
    Distant,
    /// The clocks of nodes are wrong by up to days, and are set during the run.
    WrongClocks,
    /// Links and servers fail for a while, and lose no data.
    Outage,
    /// A replica is promoted, by plan or because the primary died.
    Failover,
    /// Two servers of a shard report themselves as primary, one of them for the rest of the run.
    TwoPrimaries,
    /// Servers lose data, or their clocks are set.
    DataLoss,
    /// Nodes end and start again while servers fail.
    NodesRestart,
    /// Subjects move between shards while nodes restart one after the other; one of the nodes ends
    /// a second time.
    Rebalance,
    /// Nodes take units of a limit in advance, while servers fail and nodes end.
    Leases,
    /// Nodes reload policies with changed, added and removed limits, and refuse some of them.
    Reloads,
    /// Subjects move between two stores by a percentage that rises and falls.
    Rollout,
    /// Sentinels announce the servers, and promote a replica.
    Sentinels,
    /// The limits are in memcached.
    Memcached,
    /// Servers remove keys to free memory.
    Evictions,
    /// Servers are busy with a script.
    Busy,
}

impl Kind {
    /// The kinds of the seeds below [`FIRST_OF_SECOND`](super::FIRST_OF_SECOND), in their order.
    pub const FIRST: &[Self] = Self::ALL.split_at(8).0;

    /// The kinds of the seeds from [`FIRST_OF_SECOND`](super::FIRST_OF_SECOND) up to
    /// [`FIRST_OF_ALL`](super::FIRST_OF_ALL), in their order.
    pub const SECOND: &[Self] = Self::ALL.split_at(12).0;

    /// All kinds, in the order of the other seeds.
    pub const ALL: [Self; 16] = [
        Self::Healthy,
        Self::Distant,
        Self::WrongClocks,
        Self::Outage,
        Self::Failover,
        Self::TwoPrimaries,
        Self::DataLoss,
        Self::NodesRestart,
        Self::Rebalance,
        Self::Leases,
        Self::Reloads,
        Self::Rollout,
        Self::Sentinels,
        Self::Memcached,
        Self::Evictions,
        Self::Busy,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Healthy => "healthy",
            Self::Distant => "distant store",
            Self::WrongClocks => "wrong clocks",
            Self::Outage => "outage",
            Self::Failover => "failover",
            Self::TwoPrimaries => "two primaries",
            Self::DataLoss => "data loss",
            Self::NodesRestart => "nodes restart",
            Self::Rebalance => "rebalance",
            Self::Leases => "leases",
            Self::Reloads => "reloads",
            Self::Rollout => "rollout",
            Self::Sentinels => "sentinels",
            Self::Memcached => "memcached",
            Self::Evictions => "evictions",
            Self::Busy => "busy servers",
        })
    }
}
