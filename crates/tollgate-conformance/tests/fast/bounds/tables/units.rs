//! The bounds of units that are admitted above a limit, and of units that are refused although some
//! units are left.

pub(super) const ONE_PROCESS: &[&[&str]] = &[
    &["nothing fails", "0", "a limit admits its quota", "the conformance suite"],
    &[
        "the [memory store is full](memory.md#a-full-store)",
        "0",
        "New subjects share overflow counters, so a subject may be refused early because of another's usage. \
         Subjects within the guaranteed entries of their limit stay exact, whatever other limits contain",
        "`OVERFLOW_COUNTERS` ({OVERFLOW_COUNTERS}) for each limit, of at most `MAX_LIMITS` ({memory::bounds::MAX_LIMITS}); \
         `Bounds::guaranteed_entries`; `Bounds::largest_state`",
    ],
    &[
        "clocks differ by S, or a clock is set by S, during a time T",
        "`quota × (⌈(T + S) / window⌉ + 1)` units are admitted in total",
        "A node whose clock differs by more than half of `skew_max` decides by its store's clock, so a wrong node adds \
         at most half of `skew_max` to S. A change of the store's clock adds the whole change, once. \
         Each further change back by more than `skew_max`, alone or together with others, adds the quota",
        "`FixedWindow::max_admitted_units`; `Limit::skew_max`; `RedisShard::check_clock`",
    ],
    &[
        "a node that holds permits of a concurrency limit dies",
        "0",
        "The permits stay held until they expire, a `permit_ttl` after their last renewal",
        "`Concurrency::permit_ttl`",
    ],
    &[
        "a limit is [leased](leased.md)",
        "0",
        "A node charges units to the store before it uses them",
        "`QuotaLease`",
    ],
    &[
        "a node is told to forget a subject of a leased limit",
        "the units that each other node holds in advance and has not used",
        "The other nodes use these units",
        "`QuotaLease::max_unused_units`",
    ],
];

pub(super) const OUTAGE: &[&[&str]] = &[
    &[
        "the store is down, `on_failure: local`",
        "the capacity of the limit in each window, for all nodes together. If the capacity is smaller than the number of \
         nodes, one unit for each node",
        "Each node decides alone, with its share of the limit",
        "`LocalShare::max_admitted_units`",
    ],
    &[
        "the store is down, `on_failure: allow`",
        "no bound",
        "Every request is admitted",
        "the policy",
    ],
    &[
        "the store answers again",
        "the units that nodes admitted alone and that no longer fit the limit. In the test of an outage under two nodes: \
         at most 64 units for all limits of a shard. Units that another node holds in advance of a \
         [leased](leased.md) limit count as used then, so they can be admitted in addition after that node returns them",
        "Each node [charges](redis.md#after-an-outage) the units that fit, and counts the units above the limit as `exceeded`. \
         A node remembers {MAX_LOCAL_CHARGES} pairs of limit and subject, and counts further ones as `dropped`. A later \
         charge that misses its deadline is not repeated: its units, at most the node's share, are `unknown`",
        "`Fallback::local_charges`; `MAX_LOCAL_CHARGES`",
    ],
    &[
        "a decision misses its deadline, and the store did not execute its charge",
        "the cost of the decision",
        "The node cannot know whether the store executed the charge, so it does not charge again",
        "`FallbackCounts::fallback_decisions`",
    ],
    &[
        "a Redis or memcached server loses its counters: a flush, a restart without data, keys evicted because memory is full",
        "the limit once, for each loss",
        "The windows start again, and the loss is counted",
        "`windows_lost`, and `Losses` of memcached",
    ],
];

pub(super) const FAILOVER: &[&[&str]] = &[
    &[
        "a replica becomes the primary",
        "0 through one node. With several nodes, the smaller of two numbers: the units that the other nodes admitted before \
         the failover and after one node last read the state, and the units charged at the new primary before those other \
         nodes had [replayed their charges](redis.md#after-a-failover). The second number includes units that nodes admitted \
         alone during the outage",
        "Each node replays the charges that it has a record of",
        "`FailoverReplay::max_lost_units`",
    ],
    &[
        "a replica becomes the primary, and no node has a record of a charge: more than {failover_replay::DEFAULT_ENTRIES} \
         other charges came later; the charge was made more than {DEFAULT_RETENTION} before the outage; the outage lasted \
         longer than {MAX_OUTAGE}; the subject is longer than {recorded_state::MAX_SUBJECT_BYTES} bytes; or, in a Redis \
         Cluster, the slot was moving to the node that died",
        "the charges that had not reached the replica, at most the limit once",
        "The server's replication decides which charges are lost; \
         [`min-replicas-to-write`](redis.md#the-server) limits their age",
        "`DEFAULT_ENTRIES`, `DEFAULT_RETENTION`, `MAX_OUTAGE`, `MAX_SUBJECT_BYTES`",
    ],
    &[
        "several servers of a static shard are primaries",
        "0. The limit once, if a node cannot reach the server that the others charge, or if no node can reach the server \
         with the mark",
        "All nodes charge the same server, selected by the shard's mark and then by the configuration",
        "the mark; `ShardStatus::claimed_by`",
    ],
    &[
        "a primary that was replaced keeps answering",
        "the units that it admits until nodes leave it",
        "Nodes query the role of each server every half heartbeat, and leave a server that was replaced",
        "`LinkLimits::gray_failure_max`",
    ],
];

pub(super) const MOVES: &[&[&str]] = &[
    &[
        "nodes disagree on the percentage of a rollout, or charges are in flight through a node while its percentage changes",
        "the units admitted during that time, at most the limit once",
        "Some charges go to the old store and others to the new one",
        "`tollgate_stores::rollout::max_over_admission`",
    ],
    &[
        "a subject moves to another shard, and the new shard does not answer while nodes change over, or answers after the \
         caller has left",
        "the units admitted until this node decides on the subject again, at most the limit once",
        "The node counts the subject as diverged",
        "`tollgate_stores::rebalance::max_over_admission`; `Rebalance::diverged`",
    ],
    &[
        "a subject moves, by the shard map or by percentage, and its old store does not answer",
        "the limit once",
        "The window starts again, and the node counts the failed transfer",
        "`Rebalance::failed_transfers`, `Rollout::failed_transfers`",
    ],
    &[
        "a subject moves to another shard and makes no request in the phase `cutover`, and its counter lasts longer than every \
         counter of the policy: a token bucket with a tenant's own quota or an override, or a window that the caller sent",
        "the limit once",
        "The move does not wait for this counter, so the subject starts with an unused limit",
        "`Policy::longest_cell_lifetime`",
    ],
    &[
        "nodes use different shard maps, or reach a shard of one name at different addresses, and no move is in progress",
        "the units that the other nodes admit during that time, at most the limit once",
        "The nodes report it, a different address within 15 s",
        "`tollgate_stores::rebalance::max_over_admission`",
    ],
    &[
        "a receipt is refunded at another process, and again during or after a move of its subject, and one of the two \
         shards never had the charge",
        "the cost of the charge, once for each move",
        "The refund may be applied twice, because the ids of refunds do not move with the subject",
        "the ids of refunds",
    ],
    &[
        "a refund to a limit that counts refusals, in a window in which its subject moved to another shard",
        "the cost of the calls that were refused while nodes were in neighbouring phases of the move",
        "Nodes in neighbouring phases charge different shards, so a refund may return units that its shard never charged",
        "`Rebalance`",
    ],
    &[
        "a limit with `on_change: reset` changes, or nodes have two versions of a limit that scales",
        "the units that the other version admits in that window, at most its capacity once",
        "[`on_change`](semantics.md#when-a-limit-changes) decides what a new version starts with. Stores that do not answer \
         are counted",
        "`QuotaRescale::failed_transfers`",
    ],
    &[
        "the window of a sliding limit becomes longer, or the quota of a token bucket smaller or its burst larger, and no charge \
         of the subject is counted until its counter would have expired before the change",
        "the capacity of the limit once",
        "The counter [expires](semantics.md#when-a-limit-changes) at the earlier time, so the subject starts with an unused limit",
        "`decide::expires_at`",
    ],
    &[
        "two states of a subject are joined, because the subject moved or a replica became the primary. The limit is a \
         `sliding_log` or a `concurrency` limit, and the states together have more than {sliding_log::MAX_QUOTA} times or permits",
        "the units of the oldest times or permits, at most the units that are returned before these expire",
        "The newest {sliding_log::MAX_QUOTA} remain. They fill every quota, so no charge fits until clients return units",
        "`algo::sliding_log::MAX_QUOTA`, `algo::concurrency::MAX_QUOTA`",
    ],
    &[
        "a settlement is above its reservation; [metered costs](metered-costs.md#accuracy) settle in the same way",
        "the limit's `overdraft`, 0 by default",
        "The rest is charged in later windows. A node remembers it for at most {MAX_UNPAID} pairs of limit and subject",
        "`ReservationTerms::overdraft`; `MAX_UNPAID`",
    ],
    &[
        "a limit with `charge: on_completion`",
        "the cost of the subject's requests in flight at one time",
        "Each of these requests is charged when it ends. A concurrency limit on the same rule bounds their number",
        "the policy",
    ],
];

pub(super) const REFUSED_COLUMNS: &[&str] =
    &["When it is reached", "Units refused, at most", "What happens then", "In the code"];

pub(super) const REFUSED: &[&[&str]] = &[
    &[
        "a subject moves between shards, and a charge is in flight during the move",
        "`max_double_count`",
        "The charge may count twice at the new shard",
        "`rebalance::max_double_count`; `Rebalance::diverged` counts the charges without an answer",
    ],
    &[
        "a subject moves between shards, and a refund is in flight during the move, or one of the two stores does not \
         answer, or the refund comes from a node that has only the old map; the same for a reservation that expires \
         during the move",
        "`max_double_count`",
        "The refund may have no effect",
        "`rebalance::max_double_count`; `Rollout::unconfirmed_refunds` counts the refunds without an answer",
    ],
    &[
        "a failover, and another node last received the limit's status before a refund through this node",
        "the refunded units",
        "The other node replays the older status, so the refunded units count again",
        "`FailoverReplay`",
    ],
    &[
        "a limit with `count`, which charges every request on arrival and refunds it unless its response counts",
        "the requests in flight, at most the quota for each subject at a time",
        "A client may be refused while responses are outstanding that will not count. A request without a known response \
         (the client disconnects, the node ends, the caller reports no status) stays charged until its window ends",
        "the policy",
    ],
    &[
        "a [leased](leased.md) limit: other nodes hold units that they have not used",
        "for each other node, the smaller of {MAX_LEASE_UNITS} and the quota divided by four times the number of nodes",
        "Units count as used when a node takes them in advance. A node returns unused units within two sweeps (one every \
         {sweeper::SWEEP_PERIOD}), at most {MAX_REFUNDS_PER_SWEEP} leases in one sweep",
        "`quota_lease::max_early_refusal`; `QuotaLease::max_unused_units`, `MAX_LEASE_UNITS`; `SWEEP_PERIOD`, \
         `MAX_REFUNDS_PER_SWEEP`",
    ],
    &[
        "a leased limit: a node is killed, or the answer to a lease is lost",
        "the units of the lease",
        "They count until their window ends",
        "`LeaseCounts::units_lost`",
    ],
    &[
        "a leased limit: a node has leases for {DEFAULT_LEASES} pairs of limit and subject, or a subject is longer than \
         {table::MAX_SUBJECT_BYTES} bytes",
        "0",
        "The node takes no further leases, and queries the store for each decision",
        "`DEFAULT_LEASES`; `quota_lease::MAX_SUBJECT_BYTES`",
    ],
];
