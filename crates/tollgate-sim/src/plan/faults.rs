//! Faults that worlds of several kinds have: outages, lost data, wrong clocks and restarts of nodes.

use std::ops::RangeInclusive;

use tollgate_conformance::Random;

use super::{Action, Plan};

impl Plan {
    /// Adds clocks of nodes that are wrong from the start, and that are set to other times.
    pub(super) fn draw_clocks(&mut self, random: &mut Random) {
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

    /// Adds as many outages as a number in `count`. No data is lost.
    pub(super) fn draw_outages(&mut self, random: &mut Random, count: RangeInclusive<u64>) {
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

    /// Adds servers that lose their data, and clocks of servers that are set to other times.
    pub(super) fn draw_losses(&mut self, random: &mut Random) {
        for _ in 0..random.within(1..=2) {
            let (server, at) = (self.any_primary(random), random.within(0..=6_000));
            // The history checker compares the times of shards, so a clock is changed only if there
            // is one shard.
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
                    // Until the last node has detected the change of the clock, each node treats
                    // the windows that other nodes opened as ended.
                    self.losses += u64::from(self.nodes > 1);
                }
            }
            self.losses += 1;
        }
    }

    /// Adds nodes that end and start again.
    pub(super) fn draw_restarts(&mut self, random: &mut Random) {
        for _ in 0..random.within(1..=2) {
            let (node, at) = (self.any_node(random), random.within(0..=6_000));
            self.push(at, Action::StopNode(node));
            self.push(at + random.within(1..=2_000), Action::StartNode(node));
            self.restarts += 1;
        }
    }
}
