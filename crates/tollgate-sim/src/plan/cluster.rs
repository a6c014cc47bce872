//! Worlds with a Redis Cluster.

use tollgate_conformance::Random;

use super::failover::{PrimaryLoss, SWITCH_TIME};
use super::{Action, Failover, Plan};

impl Plan {
    /// Adds a promotion by the cluster or a move of slots between two primaries, restarts of nodes,
    /// and outages.
    pub(super) fn draw_cluster(&mut self, random: &mut Random) {
        if random.chance(60) {
            self.draw_promotion(random);
        } else {
            self.draw_slot_move(random);
        }
        if random.chance(20) {
            self.draw_restarts(random);
        }
        self.draw_outages(random, 0..=1);
    }

    /// Adds a promotion. The other servers receive the news at different times. The old primary is
    /// the last one, and becomes a replica then.
    pub(super) fn draw_promotion(&mut self, random: &mut Random) {
        let primary = self.any_primary(random);
        let (replica, at) = (primary + 1, random.within(500..=4_000));
        let lacks_from = self.draw_cut(random, replica, at);
        let later = at + random.within(1..=3_000);
        let back = later + random.within(10..=3_000);
        let loss = self.draw_primary_loss(random, primary, at, back, true);
        if loss == PrimaryLoss::Unreachable {
            // The primary answers the nodes, as long as it does not miss the other servers.
            self.push(at, Action::Detach { server: replica, on: true });
            if random.chance(50) {
                let alone = at + random.within(500..=3_000);
                let action = Action::ClusterDown { server: primary, on: true };
                self.push(alone.min(back), action);
            }
        }
        let is_planned = loss == PrimaryLoss::Planned;
        let (promoted, follows) =
            if is_planned { (at, at + 1) } else { (later, back + random.within(1..=500)) };
        self.push(promoted, Action::Promote(replica));
        let is_down = !is_planned && random.chance(50);
        for server in self.others(primary) {
            if is_down {
                let failed = promoted.saturating_sub(random.within(0..=1_000)).max(at);
                self.push(failed, Action::ClusterDown { server, on: true });
            }
            let later = if server == replica { 0 } else { random.within(0..=1_000) };
            self.push(promoted + later, Action::Gossip(server));
        }
        self.push(follows, Action::Gossip(primary));
        self.push(follows, Action::Follow { server: primary, primary: replica });
        let may_be_charged = match loss {
            PrimaryLoss::Planned => false,
            PrimaryLoss::Down => back < promoted + SWITCH_TIME,
            PrimaryLoss::Unreachable => true,
        };
        self.count_failover(Failover { lacks_from, promoted }, may_be_charged);
    }

    /// Adds a move of half of a primary's slots to another primary. The keys move in several steps.
    pub(super) fn draw_slot_move(&mut self, random: &mut Random) {
        let from = self.any_primary(random);
        let to = (from + self.servers_per_shard) % (self.shards * self.servers_per_shard);
        let mut at = random.within(500..=2_000);
        self.push(at, Action::BeginMove { from, to, upper: random.chance(50) });
        for _ in 0..random.within(1..=4) {
            at += random.within(1..=1_000);
            self.push(at, Action::MoveKeys(from));
        }
        at += random.within(1..=2_000);
        self.push(at, Action::EndMove(from));
        for server in self.others(to) {
            self.push(at + random.within(0..=1_000), Action::Gossip(server));
        }
    }

    /// Returns the indexes of all servers but one.
    fn others(&self, server: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.shards * self.servers_per_shard).filter(move |other| *other != server)
    }
}
