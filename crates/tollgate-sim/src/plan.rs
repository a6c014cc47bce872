//! From a seed to a world: its size, its clocks, its load and its faults.

use std::fmt;

use tollgate_conformance::Random;

/// What a world is about. Each kind allows its own faults, and has its own bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing fails.
    Healthy,
    /// A round trip takes more than half of a decision's deadline, and many decisions are in flight.
    Distant,
    /// The clocks of nodes are wrong by up to days, and are set.
    WrongClocks,
    /// Links and servers fail for a while, and lose no data.
    Outage,
    /// A replica is promoted, by plan or because the primary died.
    Failover,
    /// Two servers of a shard call themselves primary, one of them for the rest of the run.
    TwoPrimaries,
    /// Servers lose data, or their clocks are set.
    DataLoss,
    /// Nodes end and start again while servers fail.
    NodesRestart,
}

impl Kind {
    /// All kinds, in the order in which seeds use them.
    pub const ALL: [Self; 8] = [
        Self::Healthy,
        Self::Distant,
        Self::WrongClocks,
        Self::Outage,
        Self::Failover,
        Self::TwoPrimaries,
        Self::DataLoss,
        Self::NodesRestart,
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
        })
    }
}

/// Something that happens to a node, a server or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Packets from a node to a server are held back, or no longer.
    BlockRequests {
        /// The node.
        node: usize,
        /// The server.
        server: usize,
        /// Whether they are held back.
        on: bool,
    },
    /// Packets from a server to a node are held back, or no longer.
    BlockReplies {
        /// The node.
        node: usize,
        /// The server.
        server: usize,
        /// Whether they are held back.
        on: bool,
    },
    /// Packets from and to a server take longer by so many ms.
    Slow {
        /// The server.
        server: usize,
        /// The additional delay in ms.
        millis: u64,
    },
    /// All connections of a server break.
    Disconnect(usize),
    /// A server stops to answer, and keeps its connections.
    Freeze(usize),
    /// It answers again.
    Thaw(usize),
    /// A server ends; with `silent`, without closing its connections.
    Crash {
        /// The server.
        server: usize,
        /// Whether its machine is lost too.
        silent: bool,
    },
    /// A server starts again, in the role that it had.
    Start {
        /// The server.
        server: usize,
        /// Whether it has its data.
        has_data: bool,
    },
    /// A server becomes a primary.
    Promote(usize),
    /// A server follows another one.
    Follow {
        /// The replica.
        server: usize,
        /// Its primary.
        primary: usize,
    },
    /// A server is out of memory, or no longer.
    Full {
        /// The server.
        server: usize,
        /// Whether it is out of memory.
        on: bool,
    },
    /// A server forgets scripts and functions.
    ForgetStep(usize),
    /// All keys of a server are deleted.
    Flush(usize),
    /// A replica receives nothing of its primary, or everything again.
    Detach {
        /// The replica.
        server: usize,
        /// Whether it is detached.
        on: bool,
    },
    /// A node ends.
    StopNode(usize),
    /// A node starts.
    StartNode(usize),
    /// A node's clock is set.
    StepNode {
        /// The node.
        node: usize,
        /// By so many ms.
        millis: i64,
    },
    /// A server's clock is set.
    StepServer {
        /// The server.
        server: usize,
        /// By so many ms.
        millis: i64,
    },
}

/// The position of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerPlace {
    pub(crate) shard: usize,
    /// 0 is the primary of the configuration.
    pub(crate) number: usize,
}

impl ServerPlace {
    /// Returns the host name: `a0.sim` is the first server of shard a.
    pub(crate) fn name(self) -> String {
        let shard = char::from(b'a' + u8::try_from(self.shard).unwrap_or(25));
        format!("{shard}{}.sim", self.number)
    }
}

/// A world, as its seed draws it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// What the world is about.
    pub kind: Kind,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of shards.
    pub shards: usize,
    /// The servers of each shard: a primary, and replicas.
    pub servers_per_shard: usize,
    /// Whether the step is a script rather than a function.
    pub uses_script: bool,
    /// The shortest and the longest delay of a packet, in ms.
    pub delays: (u64, u64),
    /// The delay of replication, in ms.
    pub replication_delay: u64,
    /// How far each node's clock is ahead, in ms.
    pub node_clocks: Vec<i64>,
    /// How far each server's clock is ahead, in ms.
    pub server_clocks: Vec<i64>,
    /// The callers of each node.
    pub callers: usize,
    /// The longest pause of a caller between two requests, in ms.
    pub pause: u64,
    /// The quotas of the two limits, of 2 s and of 120 s.
    pub quotas: (u64, u64),
    /// The actions, each with its time in ms since the faults begin, in order.
    pub actions: Vec<(u64, Action)>,
    /// How long the faults last, in ms. 0 without faults.
    pub faults_last: u64,
    /// The number of times that a shard may lose all counters.
    pub losses: u64,
    /// The number of starts of nodes.
    pub restarts: u64,
}

impl Plan {
    /// Draws the world of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x7469_636b);
        let kind = Kind::ALL[(seed % Kind::ALL.len() as u64) as usize];
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
        }
        plan.actions.sort_by_key(|(at, _)| *at);
        if let Some((last, _)) = plan.actions.last() {
            plan.faults_last = last + random.within(500..=2_000);
        }
        plan
    }

    fn sized(seed: u64, kind: Kind, random: &mut Random) -> Self {
        let needs_replica = matches!(kind, Kind::Failover | Kind::TwoPrimaries);
        let shards = random.one_of(&[1, 1, 2]);
        let servers_per_shard = if needs_replica { 2 } else { random.one_of(&[1, 2]) };
        let nodes = match kind {
            Kind::Distant => 1,
            Kind::TwoPrimaries => random.within(2..=3) as usize,
            _ => random.within(1..=3) as usize,
        };
        let longest = random.within(0..=3);
        let (delays, callers, pause) = match kind {
            Kind::Distant => ((4, 4), 24, 2),
            _ => ((0, longest), random.within(2..=4) as usize, random.one_of(&[10, 20, 40])),
        };
        Self {
            seed,
            kind,
            nodes,
            shards,
            servers_per_shard,
            uses_script: random.chance(30),
            delays,
            replication_delay: random.one_of(&[0, 1, 5, 20, 100]),
            // Well within half of the default tolerance.
            node_clocks: (0..nodes).map(|_| random.within(0..=400) as i64 - 200).collect(),
            server_clocks: (0..shards * servers_per_shard)
                .map(|_| random.within(0..=400) as i64 - 200)
                .collect(),
            callers,
            pause,
            quotas: (random.within(3..=8), random.within(20..=60)),
            actions: Vec::new(),
            faults_last: 0,
            losses: 0,
            restarts: 0,
        }
    }

    /// Returns the places of all servers, in the order of their indexes.
    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerPlace> + use<> {
        let per_shard = self.servers_per_shard;
        (0..self.shards * per_shard)
            .map(move |index| ServerPlace { shard: index / per_shard, number: index % per_shard })
    }

    /// Returns the configured primary of a shard.
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

    fn draw_clocks(&mut self, random: &mut Random) {
        const WRONG: [i64; 8] =
            [3_000, 30_000, 3_600_000, 86_400_000, -3_000, -30_000, -3_600_000, -86_400_000];
        let worst = self.any_node(random);
        for node in 0..self.nodes {
            if node == worst || random.chance(50) {
                self.node_clocks[node] = random.one_of(&WRONG);
            }
        }
        for _ in 0..random.within(1..=3) {
            let (node, millis) = (self.any_node(random), random.one_of(&WRONG));
            self.push(random.within(0..=6_000), Action::StepNode { node, millis });
        }
    }

    fn draw_outages(&mut self, random: &mut Random, count: std::ops::RangeInclusive<u64>) {
        for _ in 0..random.within(count) {
            let from = random.within(0..=6_000);
            let to = from + random.one_of(&[5, 20, 100, 400, 1_500, 5_000]);
            let (node, server) = (self.any_node(random), self.any_primary(random));
            match random.within(0..=8) {
                0 => {
                    self.push(from, Action::BlockRequests { node, server, on: true });
                    self.push(to, Action::BlockRequests { node, server, on: false });
                }
                1 => {
                    self.push(from, Action::BlockReplies { node, server, on: true });
                    self.push(to, Action::BlockReplies { node, server, on: false });
                }
                2 | 3 => {
                    for node in 0..self.nodes {
                        self.push(from, Action::BlockRequests { node, server, on: true });
                        self.push(from, Action::BlockReplies { node, server, on: true });
                        self.push(to, Action::BlockRequests { node, server, on: false });
                        self.push(to, Action::BlockReplies { node, server, on: false });
                    }
                }
                4 => {
                    let millis = random.one_of(&[4, 10, 40, 200]);
                    self.push(from, Action::Slow { server, millis });
                    self.push(to, Action::Slow { server, millis: 0 });
                }
                5 => self.push(from, Action::Disconnect(server)),
                6 => {
                    self.push(from, Action::Freeze(server));
                    self.push(to, Action::Thaw(server));
                }
                7 => {
                    self.push(from, Action::Full { server, on: true });
                    self.push(to, Action::Full { server, on: false });
                }
                _ => self.push(from, Action::ForgetStep(server)),
            }
        }
        if random.chance(20) {
            let (server, from) = (self.any_primary(random), random.within(7_000..=8_000));
            self.push(from, Action::Crash { server, silent: random.chance(50) });
            let back = from + random.within(50..=3_000);
            self.push(back, Action::Start { server, has_data: true });
        }
    }

    fn draw_failover(&mut self, random: &mut Random) {
        let primary = self.any_primary(random);
        let (replica, at) = (primary + 1, random.within(500..=4_000));
        if random.chance(30) {
            let cut = at.saturating_sub(random.within(10..=400));
            self.push(cut, Action::Detach { server: replica, on: true });
        }
        let promoted = at + random.within(1..=3_000);
        let (back, follows) = (promoted + random.within(10..=3_000), promoted + 3_000);
        match random.within(0..=2) {
            0 => {
                // By plan: the old primary follows at once.
                self.push(at, Action::Promote(replica));
                self.push(at + 1, Action::Follow { server: primary, primary: replica });
            }
            1 => {
                self.push(at, Action::Crash { server: primary, silent: random.chance(50) });
                self.push(promoted, Action::Promote(replica));
                self.push(back, Action::Start { server: primary, has_data: random.chance(50) });
                self.push(back.max(follows), Action::Follow { server: primary, primary: replica });
            }
            _ => {
                self.push(at, Action::Freeze(primary));
                self.push(promoted, Action::Promote(replica));
                self.push(back, Action::Thaw(primary));
                self.push(back.max(follows), Action::Follow { server: primary, primary: replica });
            }
        }
        self.losses += 1;
    }

    fn draw_two_primaries(&mut self, random: &mut Random) {
        let primary = self.any_primary(random);
        let replica = primary + 1;
        let at = random.within(500..=2_000);
        let promoted = at + random.within(500..=2_000);
        // Long enough for the nodes to write the epoch of the promoted one.
        let back = promoted + random.within(4_000..=6_000);
        self.push(at, Action::Crash { server: primary, silent: random.chance(50) });
        self.push(promoted, Action::Promote(replica));
        self.push(back, Action::Start { server: primary, has_data: random.chance(50) });
        // A node that starts now has to choose, and knows nothing of what happened.
        let node = self.any_node(random);
        let stopped = back + random.within(10..=2_000);
        self.push(stopped, Action::StopNode(node));
        self.push(stopped + random.within(1..=500), Action::StartNode(node));
        self.losses += 1;
        self.restarts += 1;
    }

    fn draw_losses(&mut self, random: &mut Random) {
        for _ in 0..random.within(1..=2) {
            let (server, at) = (self.any_primary(random), random.within(0..=6_000));
            // The history checker compares times, so all shards have the same clock.
            match random.within(0..=if self.shards == 1 { 2 } else { 1 }) {
                0 => self.push(at, Action::Flush(server)),
                1 => {
                    self.push(at, Action::Crash { server, silent: false });
                    let back = at + random.within(10..=2_000);
                    self.push(back, Action::Start { server, has_data: false });
                }
                _ => {
                    let millis = random.one_of(&[
                        2_000,
                        10_000,
                        3_600_000,
                        86_400_000,
                        -10_000,
                        -86_400_000,
                    ]);
                    let server = self.any_server(random);
                    self.push(at, Action::StepServer { server, millis });
                    // Until the last node detects it, nodes treat each other's windows as over.
                    self.losses += u64::from(self.nodes > 1);
                }
            }
            self.losses += 1;
        }
    }

    fn draw_restarts(&mut self, random: &mut Random) {
        for _ in 0..random.within(1..=2) {
            let (node, at) = (self.any_node(random), random.within(0..=6_000));
            self.push(at, Action::StopNode(node));
            self.push(at + random.within(1..=2_000), Action::StartNode(node));
            self.restarts += 1;
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} nodes, {} shards of {} servers, the step as a {}, packets of {} to {} ms, \
             replication of {} ms, quotas {} per 2 s and {} per 120 s",
            self.kind,
            self.nodes,
            self.shards,
            self.servers_per_shard,
            if self.uses_script { "script" } else { "function" },
            self.delays.0,
            self.delays.1,
            self.replication_delay,
            self.quotas.0,
            self.quotas.1,
        )
    }
}
