//! Worlds in which sentinels announce the servers and promote replicas.

use tollgate_conformance::Random;

use super::failover::{PACKET_TIME, PrimaryLoss, SWITCH_TIME};
use super::{Action, Failover, Plan};

/// The number of sentinels in a world: two of them can outvote the third.
const SENTINELS: usize = 3;

impl Plan {
    /// Adds a promotion by sentinels. Each sentinel reports the promotion at a different time. One
    /// sentinel may be cut off from the nodes.
    pub(super) fn draw_sentinels(&mut self, random: &mut Random) {
        self.sentinels = SENTINELS;
        let shard = random.within(0..=self.shards as u64 - 1) as usize;
        let primary = self.primary_of(shard);
        let (replica, at) = (primary + 1, random.within(500..=3_000));
        // The time at which the sentinels suspect that the server is down, because it does not
        // answer.
        let suspected = at + random.within(300..=1_500);
        let promoted = suspected + random.within(50..=1_500);
        let back = promoted + random.within(10..=3_000);
        let follows = back + random.within(10..=2_000);
        let loss = self.draw_primary_loss(random, primary, at, back, true);
        let is_planned = loss == PrimaryLoss::Planned;
        self.push(promoted, Action::Promote(replica));
        let followed = if is_planned { promoted + 1 } else { follows };
        self.push(followed, Action::Follow { server: primary, primary: replica });
        for sentinel in 0..SENTINELS {
            if !is_planned {
                let doubts = suspected + random.within(0..=400);
                self.push(doubts.min(promoted), Action::Doubt { sentinel, shard, on: true });
            }
            // The first sentinel leads the failover, and the others receive the result from it.
            let later = if sentinel == 0 { 0 } else { random.within(0..=1_000) };
            self.push(promoted + later, Action::Name { sentinel, primary: replica });
        }
        if random.chance(50) {
            self.draw_sentinel_fault(random);
        }
        if random.chance(30) {
            let (node, stopped) = (self.any_node(random), random.within(0..=6_000));
            self.push(stopped, Action::StopNode(node));
            self.push(stopped + random.within(1..=500), Action::StartNode(node));
            self.restarts += 1;
        }
        let (stops, may_be_charged) = match loss {
            PrimaryLoss::Planned => (promoted, false),
            // The last sentinel reports the promotion a second later.
            PrimaryLoss::Down => (at, back < promoted + 1_000 + SWITCH_TIME),
            PrimaryLoss::Unreachable => (at, true),
        };
        let lacks_from = stops.saturating_sub(self.replication_delay + PACKET_TIME);
        self.count_failover(Failover { lacks_from, promoted }, may_be_charged);
    }

    /// Adds a fault of one sentinel: it freezes, is cut off from a node, or loses its connections.
    fn draw_sentinel_fault(&mut self, random: &mut Random) {
        let sentinel = random.within(0..=SENTINELS as u64 - 1) as usize;
        let server = self.shards * self.servers_per_shard + sentinel;
        let (node, from) = (self.any_node(random), random.within(0..=5_000));
        let to = from + random.one_of(&[20, 400, 1_500, 5_000]);
        match random.within(0..=3) {
            0 => {
                self.push(from, Action::Freeze(server));
                self.push(to, Action::Thaw(server));
            }
            1 => {
                self.push(from, Action::BlockRequests { node, server, on: true });
                self.push(to, Action::BlockRequests { node, server, on: false });
            }
            2 => {
                self.push(from, Action::BlockReplies { node, server, on: true });
                self.push(to, Action::BlockReplies { node, server, on: false });
            }
            _ => self.push(from, Action::Disconnect(server)),
        }
    }
}
