//! Worlds in which nodes receive more requests at one moment than they can send to a server.

use tollgate_conformance::Random;

use super::{Action, Plan};

impl Plan {
    /// Adds bursts of requests. Most of them come while the servers are slow or frozen, and some
    /// are larger than the queue to a server.
    pub(super) fn draw_overload(&mut self, random: &mut Random) {
        let mut at = 0;
        for _ in 0..random.within(1..=3) {
            at += random.within(500..=2_500);
            self.draw_slowness(random, at);
            let burst = at + random.within(0..=20);
            let calls = random.one_of(&[1_000, 3_000, 9_000, 12_000]);
            let subjects = random.one_of(&[1, 1, 2, 5]);
            if random.chance(20) {
                for node in 0..self.nodes {
                    self.push(burst, Action::Burst { node, calls: calls / 2, subjects });
                }
            } else {
                let node = self.any_node(random);
                self.push(burst, Action::Burst { node, calls, subjects });
            }
        }
        self.draw_outages(random, 0..=1);
    }

    /// Makes all primaries slow or frozen for some time from `at` on. In some worlds, does nothing.
    fn draw_slowness(&mut self, random: &mut Random, at: u64) {
        let to = at + random.one_of(&[5, 20, 100, 400, 1_500]);
        let millis = random.one_of(&[4, 10, 40]);
        let choice = random.within(0..=3);
        for server in (0..self.shards).map(|shard| self.primary_of(shard)).collect::<Vec<_>>() {
            match choice {
                0 => {}
                1 => {
                    self.push(at, Action::Slow { server, millis });
                    self.push(to, Action::Slow { server, millis: 0 });
                }
                _ => {
                    self.push(at, Action::Freeze(server));
                    self.push(to, Action::Thaw(server));
                }
            }
        }
    }
}
