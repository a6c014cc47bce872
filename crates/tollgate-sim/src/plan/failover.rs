//! Worlds in which a replica is promoted.

use tollgate_conformance::Random;

use super::{Action, Failover, Plan};

/// The longest time in ms from a promotion until all nodes charge the promoted server.
pub(super) const SWITCH_TIME: u64 = 2_000;

/// More than the time in ms from the execution of a charge until its node has the answer.
pub(super) const PACKET_TIME: u64 = 20;

/// The reason why a replica takes the place of a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrimaryLoss {
    /// An operator plans the promotion. The primary answers until then.
    Planned,
    /// The primary crashed or froze.
    Down,
    /// Only the processes that decide on a promotion cannot reach the primary. It answers the
    /// nodes.
    Unreachable,
}

impl Plan {
    /// Adds a promotion: as a planned change, after the primary crashed, or while the primary is
    /// frozen.
    pub(super) fn draw_failover(&mut self, random: &mut Random) {
        let primary = self.any_primary(random);
        let (replica, at) = (primary + 1, random.within(500..=4_000));
        let lacks_from = self.draw_cut(random, replica, at);
        let later = at + random.within(1..=3_000);
        let back = later + random.within(10..=3_000);
        let loss = self.draw_primary_loss(random, primary, at, back, false);
        // In a planned failover, the old primary becomes a replica immediately.
        let (promoted, follows) = match loss {
            PrimaryLoss::Planned => (at, at + 1),
            _ => (later, back.max(later + 3_000)),
        };
        self.push(promoted, Action::Promote(replica));
        self.push(follows, Action::Follow { server: primary, primary: replica });
        let may_return = loss != PrimaryLoss::Planned && back < promoted + SWITCH_TIME;
        self.count_failover(Failover { lacks_from, promoted }, may_return);
    }

    /// Adds a promotion after which the old primary returns as a second primary, and a restart of a
    /// node.
    pub(super) fn draw_two_primaries(&mut self, random: &mut Random) {
        let primary = self.any_primary(random);
        let replica = primary + 1;
        let at = random.within(500..=2_000);
        let promoted = at + random.within(500..=2_000);
        // After this time, the nodes have written the replication epoch of the promoted server.
        let back = promoted + random.within(4_000..=6_000);
        self.push(at, Action::Crash { server: primary, silent: random.chance(50) });
        self.push(promoted, Action::Promote(replica));
        self.push(back, Action::Start { server: primary, has_data: random.chance(50) });
        // A node that starts now has to choose a primary without having observed the servers
        // before.
        let node = self.any_node(random);
        let stopped = back + random.within(10..=2_000);
        self.push(stopped, Action::StopNode(node));
        self.push(stopped + random.within(1..=500), Action::StartNode(node));
        let lacks_from = at.saturating_sub(self.replication_delay + PACKET_TIME);
        self.count_failover(Failover { lacks_from, promoted }, false);
        self.restarts += 1;
    }

    /// Counts a promotion: as a loss of counters if nodes may charge the old primary after it, and
    /// as a failover otherwise.
    pub(super) fn count_failover(&mut self, failover: Failover, is_charged_later: bool) {
        if is_charged_later {
            self.losses += 1;
        } else {
            self.failovers.push(failover);
        }
    }

    /// In some worlds, cuts `replica` off from its primary shortly before `at`. Returns the time
    /// from which the replica may lack charges if its primary answers none after `at`.
    pub(super) fn draw_cut(&mut self, random: &mut Random, replica: usize, at: u64) -> u64 {
        let mut lacks_from = at.saturating_sub(self.replication_delay + PACKET_TIME);
        if random.chance(30) {
            let cut = at.saturating_sub(random.within(10..=400));
            self.push(cut, Action::Detach { server: replica, on: true });
            lacks_from = lacks_from.min(cut.saturating_sub(self.replication_delay + PACKET_TIME));
        }
        lacks_from
    }

    /// Adds the loss of `primary` at the time `at`. A primary that crashes or freezes returns at
    /// the time `back`. The primary may be [`PrimaryLoss::Unreachable`] only if
    /// `can_be_unreachable` is set.
    pub(super) fn draw_primary_loss(
        &mut self,
        random: &mut Random,
        primary: usize,
        at: u64,
        back: u64,
        can_be_unreachable: bool,
    ) -> PrimaryLoss {
        match random.within(0..=if can_be_unreachable { 3 } else { 2 }) {
            0 => PrimaryLoss::Planned,
            1 => {
                self.push(at, Action::Crash { server: primary, silent: random.chance(50) });
                self.push(back, Action::Start { server: primary, has_data: random.chance(50) });
                PrimaryLoss::Down
            }
            2 => {
                self.push(at, Action::Freeze(primary));
                self.push(back, Action::Thaw(primary));
                PrimaryLoss::Down
            }
            _ => PrimaryLoss::Unreachable,
        }
    }
}
