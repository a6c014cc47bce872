//! The plan of a world: its size, its clocks, its load and its faults. The plan is derived from a
//! seed.

mod action;
mod changes;
mod cluster;
mod failover;
mod faults;
mod kind;
mod membership;
mod memory;
mod overload;
mod override_effect;
mod overrides;
mod sentinels;
mod server_clocks;
mod smaller;
mod store;
mod version;

use std::fmt;

use tollgate_conformance::Random;

pub use action::Action;
pub use kind::Kind;
pub use override_effect::{GrantedOverride, OverrideEffect};
pub use store::StoreKind;
pub use version::{Defect, Version};

/// The interval in ms after which callers begin to use another new subject. During each fault,
/// some subjects are therefore new, and others have reached their limit.
pub(crate) const SUBJECT_PERIOD: u64 = 500;

/// The longest pause of a caller after a refusal, in ms. Some kinds of worlds use another value.
const PAUSE_AFTER_REFUSAL: u64 = 120;

/// The default deadline of a decision, in ms.
const DEADLINE: u64 = 15;

/// The deadline of a decision with memcached, in ms. A decision on two limits takes three round
/// trips, and more if other nodes charge the same subject.
const MEMCACHED_DEADLINE: u64 = 50;

/// The first seed for which [`Kind::SECOND`] contains the possible kinds of worlds.
pub const FIRST_OF_SECOND: u64 = 4_096;

/// The first seed for which [`Kind::THIRD`] contains the possible kinds of worlds.
pub const FIRST_OF_THIRD: u64 = 16_384;

/// The first seed for which [`Kind::FOURTH`] contains the possible kinds of worlds.
pub const FIRST_OF_FOURTH: u64 = 1 << 20;

/// The first seed for which [`Kind::ALL`] contains the possible kinds of worlds.
pub const FIRST_OF_ALL: u64 = 1 << 22;

/// The position of a server: its shard, and its number in the shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerAddress {
    pub(crate) shard: usize,
    /// The number of the server in its shard. The configured primary has the number 0.
    pub(crate) number: usize,
}

impl ServerAddress {
    /// Returns the host name of the server: `a0.sim` is the first server of shard a.
    pub(crate) fn name(self) -> String {
        format!("{}{}.sim", shard_name(self.shard), self.number)
    }
}

/// Returns the host name of a sentinel.
pub(crate) fn sentinel_name(number: usize) -> String {
    format!("s{number}.sim")
}

/// Returns the name that a shard has in policy files and in the configuration of sentinels.
pub(crate) fn shard_name(shard: usize) -> char {
    char::from(b'a' + u8::try_from(shard).unwrap_or(25))
}

/// A promotion of a replica, with times in ms since the beginning of the faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The time from which the replica may lack the charges of the old primary.
    pub lacks_from: u64,
    /// The time of the promotion. The old primary is not charged after it.
    pub promoted: u64,
}

/// The plan of a world. All its values are derived from the seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The kind of the world.
    pub kind: Kind,
    /// The store in which the counters are.
    pub store: StoreKind,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of shards.
    pub shards: usize,
    /// The number of servers in each shard: a primary and its replicas.
    pub servers_per_shard: usize,
    /// The number of sentinels that announce the servers. If there are none, the policy lists the
    /// servers.
    pub sentinels: usize,
    /// Whether the step runs as a script. Otherwise it runs as a function.
    pub uses_script: bool,
    /// The shortest and the longest delay of a packet, in ms.
    pub delays: (u64, u64),
    /// The deadline of a decision of the nodes, in ms.
    pub deadline: u64,
    /// The delay of replication, in ms.
    pub replication_delay: u64,
    /// How far the clock of each node is ahead of the world's time, in ms.
    pub node_clocks: Vec<i64>,
    /// How far the clock of each server is ahead of the world's time, in ms.
    pub server_clocks: Vec<i64>,
    /// The number of callers of each node.
    pub callers: usize,
    /// The longest pause of a caller between two requests, in ms.
    pub pause: u64,
    /// The longest pause of a caller after a refusal, in ms. It applies only if it is longer than
    /// `pause`. A node repeats a refusal from its deny cache, so frequent retries would test
    /// little.
    pub pause_after_refusal: u64,
    /// The time for which callers send requests of a subject, in ms.
    pub subject_life: u64,
    /// The quotas in the first version of the policy: that of the first limit, which has a window
    /// of 2 s, and that of the second limit, which has a window of 120 s.
    pub quotas: (u64, u64),
    /// The versions of the policy. Nodes start with the first one.
    pub versions: Vec<Version>,
    /// The index of the policy version that all nodes use at the end.
    pub last_version: usize,
    /// The overrides that may be in force while faults last. The judge permits no others.
    pub overrides: Vec<GrantedOverride>,
    /// The overrides at the end. Each has the number of its subject, or `None` if it is the
    /// override of all subjects.
    pub last_overrides: Vec<(Option<u64>, OverrideEffect)>,
    /// The faults and changes, in order. Each has its time in ms since the beginning of the faults.
    pub actions: Vec<(u64, Action)>,
    /// The duration of all faults together, in ms. 0 if there are no faults.
    pub faults_last: u64,
    /// The number of times that all counters of a shard may be lost.
    pub losses: u64,
    /// The promotions after which nodes replay their charges, so few units are lost. If the old
    /// primary may be charged after a promotion, [`losses`](Self::losses) counts the promotion.
    pub failovers: Vec<Failover>,
    /// The number of times that a node restarts.
    pub restarts: u64,
    /// The nodes that do not run at the beginning. They join later.
    pub absent_first: Vec<usize>,
    /// The nodes that do not run at the end. They have left for good.
    pub absent_last: Vec<usize>,
}

impl Plan {
    /// Generates the world of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x7469_636b);
        let kinds = match seed {
            ..FIRST_OF_SECOND => Kind::FIRST,
            FIRST_OF_SECOND..FIRST_OF_THIRD => Kind::SECOND,
            FIRST_OF_THIRD..FIRST_OF_FOURTH => Kind::THIRD,
            FIRST_OF_FOURTH..FIRST_OF_ALL => Kind::FOURTH,
            FIRST_OF_ALL.. => &Kind::ALL[..],
        };
        let kind = kinds[(seed % kinds.len() as u64) as usize];
        let mut plan = Self::sized(seed, kind, &mut random);
        match kind {
            Kind::Healthy | Kind::Distant => {}
            Kind::WrongClocks => plan.draw_clocks(&mut random),
            Kind::Outage => plan.draw_outages(&mut random, 1..=4),
            Kind::Failover => plan.draw_failover(&mut random),
            Kind::TwoPrimaries => plan.draw_two_primaries(&mut random),
            Kind::DataLoss => plan.draw_losses(&mut random),
            Kind::NodesRestart => {
                plan.draw_restarts(&mut random);
                plan.draw_outages(&mut random, 0..=2);
            }
            Kind::Rebalance => plan.draw_rebalance(&mut random),
            Kind::Leases => plan.draw_leases(&mut random),
            Kind::Reloads => plan.draw_reloads(&mut random),
            Kind::Rollout => plan.draw_rollout(&mut random),
            Kind::Sentinels => plan.draw_sentinels(&mut random),
            Kind::Memcached => plan.draw_memcached(&mut random),
            Kind::Evictions => plan.draw_evictions(&mut random),
            Kind::Busy => plan.draw_busy(&mut random),
            Kind::Cluster => plan.draw_cluster(&mut random),
            Kind::Overrides => plan.draw_overrides(&mut random),
            Kind::ServerClocks => plan.draw_server_clocks(&mut random),
            Kind::Overload => plan.draw_overload(&mut random),
            Kind::Membership => plan.draw_membership(&mut random),
        }
        // A world of the kind `Distant` has so many callers that one subject would receive nearly
        // all requests.
        if seed >= FIRST_OF_SECOND && random.chance(10) && kind != Kind::Distant {
            plan.pause_after_refusal = 0;
        }
        plan.actions.sort_by_key(|(at, _)| *at);
        if let Some((last, _)) = plan.actions.last() {
            plan.faults_last = last + random.within(500..=2_000);
        }
        plan
    }

    fn sized(seed: u64, kind: Kind, random: &mut Random) -> Self {
        let store = StoreKind::of(kind, random);
        let needs_replica = store == StoreKind::Cluster
            || matches!(
                kind,
                Kind::Failover | Kind::TwoPrimaries | Kind::Sentinels | Kind::ServerClocks
            );
        let shards = any_shard_count(kind, store, random);
        let servers_per_shard = match store {
            StoreKind::Memcached => 1,
            _ if needs_replica => 2,
            _ => random.one_of(&[1, 2]),
        };
        let nodes = match kind {
            Kind::Distant => 1,
            Kind::TwoPrimaries | Kind::Membership => random.within(2..=3) as usize,
            _ => random.within(1..=3) as usize,
        };
        let longest = random.within(0..=3);
        // When a quota lease ends, a decision needs three round trips within its deadline.
        let longest = match kind {
            Kind::Leases => longest.min(2),
            _ if store == StoreKind::Memcached => longest.min(1),
            _ => longest,
        };
        let (delays, callers, pause) = match kind {
            Kind::Distant => ((4, 4), 24, 2),
            _ => ((0, longest), random.within(2..=4) as usize, random.one_of(&[10, 20, 40])),
        };
        let quotas = |random: &mut Random| (random.within(3..=8), random.within(20..=60));
        let mut plan = Self {
            seed,
            kind,
            store,
            nodes,
            shards,
            servers_per_shard,
            sentinels: 0,
            uses_script: random.chance(30),
            delays,
            deadline: match store {
                StoreKind::Memcached => MEMCACHED_DEADLINE,
                StoreKind::Redis | StoreKind::Cluster => DEADLINE,
            },
            replication_delay: random.one_of(&[0, 1, 5, 20, 100]),
            // The differences between the clocks are far below half of the default clock skew.
            node_clocks: (0..nodes).map(|_| random.within(0..=400) as i64 - 200).collect(),
            server_clocks: (0..shards * servers_per_shard)
                .map(|_| random.within(0..=400) as i64 - 200)
                .collect(),
            callers,
            pause,
            pause_after_refusal: PAUSE_AFTER_REFUSAL,
            subject_life: u64::MAX,
            quotas: quotas(random),
            versions: Vec::new(),
            last_version: 0,
            overrides: Vec::new(),
            last_overrides: Vec::new(),
            actions: Vec::new(),
            faults_last: 0,
            losses: 0,
            failovers: Vec::new(),
            restarts: 0,
            absent_first: Vec::new(),
            absent_last: Vec::new(),
        };
        plan.versions.push(Version::new(plan.quotas, shards));
        plan
    }

    /// Returns the quotas of the second limit in the first and in the last version of the policy.
    pub(crate) fn first_and_last_quota(&self) -> (u64, u64) {
        (self.quotas.1, self.versions[self.last_version].quotas.1)
    }

    /// Returns the quotas of the second limit in the versions that nodes accept.
    pub(crate) fn accepted_quotas(&self) -> impl Iterator<Item = u64> {
        let accepted = self.versions.iter().filter(|version| version.defect.is_none());
        accepted.map(|version| version.quotas.1)
    }

    /// Returns the positions of all servers, in the order of the servers' indexes.
    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerAddress> + use<> {
        let per_shard = self.servers_per_shard;
        (0..self.shards * per_shard)
            .map(move |index| ServerAddress { shard: index / per_shard, number: index % per_shard })
    }

    /// Returns the index of the configured primary of a shard.
    pub(crate) const fn primary_of(&self, shard: usize) -> usize {
        shard * self.servers_per_shard
    }

    fn push(&mut self, at: u64, action: Action) {
        self.actions.push((at, action));
    }

    fn any_server(&self, random: &mut Random) -> usize {
        random.within(0..=(self.shards * self.servers_per_shard - 1) as u64) as usize
    }

    fn any_primary(&self, random: &mut Random) -> usize {
        self.primary_of(random.within(0..=self.shards as u64 - 1) as usize)
    }

    fn any_node(&self, random: &mut Random) -> usize {
        random.within(0..=self.nodes as u64 - 1) as usize
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} nodes with {} callers each, {} shards of {} servers in {}, {} sentinels, the \
             step as a {}, packets of {} to {} ms, replication of {} ms, quotas {} per 2 s and {} \
             per 120 s",
            self.kind,
            self.nodes,
            self.callers,
            self.shards,
            self.servers_per_shard,
            self.store,
            self.sentinels,
            if self.uses_script { "script" } else { "function" },
            self.delays.0,
            self.delays.1,
            self.replication_delay,
            self.quotas.0,
            self.quotas.1,
        )
    }
}

/// Returns the number of shards of a world.
fn any_shard_count(kind: Kind, store: StoreKind, random: &mut Random) -> usize {
    match kind {
        _ if store == StoreKind::Cluster => random.one_of(&[2, 3]),
        Kind::Rebalance => random.one_of(&[2, 3]),
        Kind::Rollout => 2,
        // See `Plan::correct_clocks`. A node knows the clock of a memcached server only to 2 s.
        Kind::ServerClocks if store == StoreKind::Memcached => 1,
        _ => random.one_of(&[1, 1, 2]),
    }
}
