//! Worlds in which the clocks of servers are wrong and are set to other times.

use tollgate_conformance::Random;

use super::{Action, Plan, StoreKind};

/// The differences between clocks, in ms: from one that changes nothing to three days.
const DIFFERENCES: [i64; 12] =
    [5, 20, 100, 500, 2_000, 3_000, 6_000, 30_000, 150_000, 3_600_000, 86_400_000, 3 * 86_400_000];

/// The difference in ms up to which every node decides by its own clock: half of the default
/// `skew_max`, less the largest error with which a node estimates the clock of a server.
const TOLERATED: u64 = 2_500 - 20;

/// The same difference with memcached, whose servers report their time in whole seconds.
const TOLERATED_WITH_MEMCACHED: u64 = 2_500 - 2_250;

/// The window of the second limit in ms, less the longest time for which a subject is used.
const LEAST_REST: i64 = 90_000;

impl Plan {
    /// Adds wrong clocks of servers, which are set to other times. In some worlds, also adds a
    /// promotion, or an outage.
    pub(super) fn draw_server_clocks(&mut self, random: &mut Random) {
        self.draw_first_offsets(random);
        match self.store {
            StoreKind::Memcached => self.draw_clocks_at_restarts(random),
            StoreKind::Redis | StoreKind::Cluster => {
                if random.chance(50) {
                    match self.store {
                        StoreKind::Cluster => self.draw_promotion(random),
                        _ if random.chance(40) => self.draw_sentinels(random),
                        _ => self.draw_failover(random),
                    }
                }
                self.draw_clock_steps(random);
            }
        }
        if random.chance(30) {
            self.draw_outages(random, 1..=1);
        }
        // A server with another clock can drop counters, which nodes do not replay.
        self.losses += self.failovers.len() as u64;
        self.failovers.clear();
        if self.store == StoreKind::Memcached {
            self.lose_data_at_restarts();
        } else if self.nodes == 1 && self.restarts == 0 && self.sentinels == 0 {
            // The only node replays its charges after a promotion.
            self.losses = 0;
        }
        self.losses += self.clock_losses();
    }

    /// Sets all clocks ahead or back by the same time, and the clocks of some replicas to other
    /// times.
    fn draw_first_offsets(&mut self, random: &mut Random) {
        let common = if random.chance(60) { any_difference(random) } else { 0 };
        for (index, place) in self.servers().enumerate() {
            let of_replica = place.number > 0 && random.chance(50);
            let own = if of_replica { any_difference(random) } else { 0 };
            self.server_clocks[index] += common + own;
        }
    }

    /// Adds restarts of all memcached servers, one after another, each with another time. A
    /// memcached server counts the time by a monotonic clock, so it has the new time of its
    /// machine only after a restart.
    fn draw_clocks_at_restarts(&mut self, random: &mut Random) {
        let mut at = 0;
        for _ in 0..random.within(1..=2) {
            let millis = any_difference(random);
            at += random.within(200..=3_000);
            for server in 0..self.shards {
                let from = at + random.within(0..=1_000);
                let back = from + random.within(2..=2_000);
                self.push(from, Action::Crash { server, silent: random.chance(50) });
                self.push(from + 1, Action::StepServer { server, millis });
                self.push(back, Action::Start { server, has_data: false });
            }
            at += 3_000;
        }
    }

    /// Adds changes of the clocks of one server, of all servers, or of all primaries or replicas.
    fn draw_clock_steps(&mut self, random: &mut Random) {
        let mut at = 0;
        for _ in 0..random.within(1..=4) {
            at += random.within(200..=2_500);
            let millis = any_difference(random);
            let (one, number) = (self.any_server(random), random.within(0..=1) as usize);
            let choice = random.within(0..=2);
            for (server, place) in self.servers().enumerate() {
                let is_meant = match choice {
                    0 => true,
                    1 => server == one,
                    _ => place.number == number,
                };
                if is_meant {
                    self.push(at, Action::StepServer { server, millis });
                }
            }
        }
        if self.shards > 1 {
            self.correct_clocks(random);
        }
    }

    /// Sets all clocks to about the same time after the last change. While the clocks of shards
    /// differ, each shard decides and reports resets by its own clock, and the node compares them
    /// with the clock of the first shard. The checks of the phases without faults need one clock.
    fn correct_clocks(&mut self, random: &mut Random) {
        let mut clocks = self.server_clocks.clone();
        for (_, action) in &self.actions {
            if let Action::StepServer { server, millis } = action {
                clocks[*server] += millis;
            }
        }
        let last = self.actions.iter().map(|(at, _)| *at).max().unwrap_or(0);
        let at = last + random.within(100..=1_000);
        let common = if random.chance(50) { any_difference(random) } else { 0 };
        for (server, clock) in clocks.into_iter().enumerate() {
            let right = common + random.within(0..=400) as i64 - 200;
            self.push(at, Action::StepServer { server, millis: right - clock });
        }
    }

    /// Returns how often windows may start again because of the clocks of primaries: once for each
    /// change of the time by which nodes decide. If several nodes use the server, and its clock is
    /// set back by more than the rest of a window, each node that has not detected the change yet
    /// treats the windows of the others as ended.
    fn clock_losses(&self) -> u64 {
        let tolerated = match self.store {
            StoreKind::Memcached => TOLERATED_WITH_MEMCACHED,
            StoreKind::Redis | StoreKind::Cluster => TOLERATED,
        };
        let is_tolerated = |clock: i64| {
            let mut nodes = self.node_clocks.iter();
            nodes.all(|node| node.abs_diff(clock) <= tolerated)
        };
        let mut losses = 0;
        for (before, after) in self.clock_changes() {
            if !is_tolerated(before) || !is_tolerated(after) {
                losses += 1 + u64::from(self.nodes > 1 && after - before < -LEAST_REST);
            }
        }
        losses
    }

    /// Returns the offset of the clock of a primary before and after each change: the clock was
    /// set, or another server was promoted. Servers that were primaries before are included.
    fn clock_changes(&self) -> Vec<(i64, i64)> {
        let mut actions = self.actions.clone();
        actions.sort_by_key(|(at, _)| *at);
        let mut clocks = self.server_clocks.clone();
        let mut primaries: Vec<_> = (0..self.shards).map(|shard| self.primary_of(shard)).collect();
        let mut have_led = primaries.clone();
        let mut changes = Vec::new();
        for (_, action) in actions {
            match action {
                Action::StepServer { server, millis } => {
                    let before = clocks[server];
                    clocks[server] += millis;
                    if have_led.contains(&server) {
                        changes.push((before, clocks[server]));
                    }
                }
                Action::Promote(server) => {
                    let primary = &mut primaries[server / self.servers_per_shard];
                    changes.push((clocks[*primary], clocks[server]));
                    *primary = server;
                    have_led.push(server);
                }
                _ => {}
            }
        }
        changes
    }
}

/// Returns any of [`DIFFERENCES`], ahead or behind.
fn any_difference(random: &mut Random) -> i64 {
    let difference = random.one_of(&DIFFERENCES);
    if random.chance(50) { difference } else { -difference }
}
