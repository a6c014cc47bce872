//! The kinds of worlds.

use std::fmt;

/// The kind of a world, which determines the faults and the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing fails.
    Healthy,
    /// Nothing fails, but a round trip takes more than half of a decision's deadline, and many
    /// decisions are in flight.
    Distant,
    /// The clocks of nodes are wrong by up to days, and are set to other times during the run.
    WrongClocks,
    /// Links and servers fail for some time. No data is lost.
    Outage,
    /// A replica is promoted, because an operator plans it or because the primary has died.
    Failover,
    /// A replica is promoted while the primary of its shard is down. The old primary starts again
    /// and reports itself as primary until the end of the run.
    TwoPrimaries,
    /// Servers lose data, or their clocks are set to other times.
    DataLoss,
    /// Nodes end and start again, while servers also fail.
    NodesRestart,
    /// Subjects move between shards, while nodes restart one after another. One of the nodes
    /// restarts a second time.
    Rebalance,
    /// Nodes take units of a limit in advance with quota leases, while servers fail and nodes end.
    Leases,
    /// Nodes reload policies in which limits are changed, added or removed. Nodes must refuse some
    /// of the policies.
    Reloads,
    /// Subjects move between the two stores of a rollout, as its percentage rises and falls.
    Rollout,
    /// Sentinels announce the servers, and promote a replica.
    Sentinels,
    /// The counters are in memcached. Servers fail, and lose their data when they restart.
    Memcached,
    /// Servers remove keys to free memory.
    Evictions,
    /// Servers are busy with a script and answer every command with an error.
    Busy,
    /// The servers are a Redis Cluster, in which a replica is promoted or slots move.
    Cluster,
    /// Operators change an override while servers fail.
    Overrides,
    /// The clocks of servers are wrong by up to days, and are set to other times during the run.
    ServerClocks,
    /// Nodes receive more requests at one moment than their queues can hold.
    Overload,
    /// Nodes join, leave and pause, and the policy states another number of nodes.
    Membership,
}

impl Kind {
    /// The kinds of worlds for seeds below [`FIRST_OF_SECOND`](super::FIRST_OF_SECOND). The
    /// remainder of the seed divided by the number of kinds selects the kind.
    pub const FIRST: &[Self] = Self::ALL.split_at(8).0;

    /// The kinds of worlds for seeds from [`FIRST_OF_SECOND`](super::FIRST_OF_SECOND) up to, but
    /// not including, [`FIRST_OF_THIRD`](super::FIRST_OF_THIRD). The remainder of the seed divided
    /// by the number of kinds selects the kind.
    pub const SECOND: &[Self] = Self::ALL.split_at(12).0;

    /// The kinds of worlds for seeds from [`FIRST_OF_THIRD`](super::FIRST_OF_THIRD) up to, but not
    /// including, [`FIRST_OF_FOURTH`](super::FIRST_OF_FOURTH). The remainder of the seed divided by
    /// the number of kinds selects the kind.
    pub const THIRD: &[Self] = Self::ALL.split_at(16).0;

    /// The kinds of worlds for seeds from [`FIRST_OF_FOURTH`](super::FIRST_OF_FOURTH) up to, but
    /// not including, [`FIRST_OF_ALL`](super::FIRST_OF_ALL). The remainder of the seed divided by
    /// the number of kinds selects the kind.
    pub const FOURTH: &[Self] = Self::ALL.split_at(18).0;

    /// All kinds of worlds. For seeds from [`FIRST_OF_ALL`](super::FIRST_OF_ALL) on, the remainder
    /// of the seed divided by the number of kinds selects the kind.
    pub const ALL: [Self; 21] = [
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
        Self::Cluster,
        Self::Overrides,
        Self::ServerClocks,
        Self::Overload,
        Self::Membership,
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
            Self::Cluster => "cluster",
            Self::Overrides => "overrides",
            Self::ServerClocks => "server clocks",
            Self::Overload => "overload",
            Self::Membership => "membership",
        })
    }
}
