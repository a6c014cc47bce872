//! Worlds in which operators change the configuration: shards, leased limits, policies and
//! rollouts.

use tollgate_conformance::Random;

use super::{Action, Defect, Plan, Version};

/// In worlds in which shards are added or removed: the window of the second limit, in seconds. A
/// node can end a rebalance only after the longest window.
const MOVE_WINDOW: u64 = 15;

/// The longest time, in ms, from the start of the last node with the new shard map until every node
/// has ended the rebalance. It is the sum of three times:
/// - 20.5 s until a node uses only the new shards. The last heartbeat with the old shard map expires
///   after 10 s. Three observations after that, one every 3.3 s, must find no such heartbeat.
/// - the window and 1 s of tolerated clock difference. For this time, counters in the old shards
///   affect decisions.
/// - 14 s, because other nodes may still use the old shards for 10 s, the lifetime of a heartbeat,
///   and the observation that ends the rebalance follows within 3.3 s.
const MOVE_TIME: u64 = 20_500 + MOVE_WINDOW * 1_000 + 1_000 + 14_000;

/// The time in ms for which callers send requests of one subject in a world with a rebalance. It is
/// shorter than the window.
const MOVE_SUBJECT_LIFE: u64 = 6_000;

impl Plan {
    /// Adds a rebalance to the plan. All nodes restart with a new shard map, and one of them may
    /// restart twice. At the end, all nodes restart without the previous shard map.
    pub(super) fn draw_rebalance(&mut self, random: &mut Random) {
        let all: Vec<usize> = (0..self.shards).collect();
        let fewer = all[..self.shards - 1].to_vec();
        let (before, after) = match random.within(0..=2) {
            0 => (fewer, all),
            1 => (all, fewer),
            _ => (fewer, all[1..].to_vec()),
        };
        // Worlds of this kind are long. With these pauses, they have as many requests as others.
        self.callers = 2;
        self.pause = 100;
        self.pause_after_refusal = 300;
        self.subject_life = MOVE_SUBJECT_LIFE;
        let version = |shards: &[usize], previous: Option<&[usize]>| Version {
            window: MOVE_WINDOW,
            shards: shards.to_vec(),
            previous: previous.map(<[usize]>::to_vec),
            ..Version::new(self.quotas, 0)
        };
        self.versions =
            vec![version(&before, None), version(&after, Some(&before)), version(&after, None)];
        self.last_version = 2;
        let mut at = random.within(500..=3_000);
        for node in 0..self.nodes {
            at = self.push_restart(random, at, node, 1) + random.within(10..=3_000);
        }
        if random.chance(30) {
            let within = at.saturating_sub(6_000)..=at + MOVE_TIME - 8_000;
            self.draw_outages_at(random, within);
        }
        if random.chance(60) {
            // The node that restarts can be the leader of the rebalance or another node. While it
            // connects, the other nodes may have stopped using the old shards of subjects. See
            // `rebalance::max_over_admission`.
            self.losses += u64::from(self.nodes > 1);
            let node = self.any_node(random);
            at += random.within(0..=MOVE_TIME);
            at = self.push_restart(random, at, node, 1);
        }
        at += MOVE_TIME;
        for node in 0..self.nodes {
            at = self.push_restart(random, at, node, 2) + random.within(10..=2_000);
        }
    }

    /// Adds outages that begin within 8 s after a time in `within`. During such an outage, the
    /// usage in one store may be missing in the other store, and charges may reach only one of the
    /// stores.
    fn draw_outages_at(&mut self, random: &mut Random, within: std::ops::RangeInclusive<u64>) {
        let (before, shift) = (self.actions.len(), random.within(within));
        self.draw_outages(random, 1..=2);
        self.actions[before..].iter_mut().for_each(|(at, _)| *at += shift);
        self.losses += 2;
    }

    /// Ends a node at `at`, and starts it with a version of the policy. Returns the time of the
    /// start.
    pub(super) fn push_restart(
        &mut self,
        random: &mut Random,
        at: u64,
        node: usize,
        version: usize,
    ) -> u64 {
        let back = at + random.within(1..=1_000);
        self.push(at, Action::StopNode(node));
        self.push(at, Action::Adopt { node, version });
        self.push(back, Action::StartNode(node));
        self.restarts += 1;
        back
    }

    /// Adds many requests for a few subjects on a leased limit, outages, and nodes that end.
    pub(super) fn draw_leases(&mut self, random: &mut Random) {
        self.pause = random.one_of(&[3, 6, 12]);
        self.quotas.1 = random.within(100..=400);
        self.versions = vec![Version { is_leased: true, ..Version::new(self.quotas, self.shards) }];
        if random.chance(40) {
            self.draw_restarts(random);
        }
        self.draw_outages(random, 0..=2);
    }

    /// Adds reloads of changed policies. Each node reloads at another time. Some of the policies
    /// are invalid, and nodes must refuse them.
    pub(super) fn draw_reloads(&mut self, random: &mut Random) {
        let base = self.versions[0].clone();
        let mut at = 0;
        for _ in 0..random.within(1..=3) {
            let quotas = (random.within(3..=8), random.within(20..=60));
            let has_third_limit = random.chance(40);
            self.versions.push(Version { quotas, has_third_limit, ..base.clone() });
            self.last_version = self.versions.len() - 1;
            let version = self.last_version;
            at += random.within(200..=3_000);
            for node in 0..self.nodes {
                self.push(at + random.within(0..=1_000), Action::Reload { node, version });
            }
            at += 1_000;
            if random.chance(60) {
                let defect =
                    random.one_of(&[Defect::Cut, Defect::NoSuchLimit, Defect::NeedsRestart]);
                let quotas = (100, 1_000);
                self.versions.push(Version { quotas, defect: Some(defect), ..base.clone() });
                let (node, version) = (self.any_node(random), self.versions.len() - 1);
                self.push(at + random.within(0..=1_000), Action::Reload { node, version });
                at += 1_000;
            }
        }
        self.draw_outages(random, 0..=1);
    }

    /// Adds a rollout with a percentage that rises and falls. Each node changes the percentage at
    /// another time.
    pub(super) fn draw_rollout(&mut self, random: &mut Random) {
        let base = Version { percent: Some(0), ..self.versions[0].clone() };
        self.versions = vec![Version { percent: Some(random.one_of(&[0, 0, 50])), ..base.clone() }];
        let mut at = 0;
        for _ in 0..random.within(1..=3) {
            let percent = Some(random.one_of(&[0, 1, 10, 50, 90, 100]));
            self.versions.push(Version { percent, ..base.clone() });
            self.last_version = self.versions.len() - 1;
            let version = self.last_version;
            at += random.within(500..=4_000);
            for node in 0..self.nodes {
                self.push(at + random.within(0..=500), Action::Reload { node, version });
            }
            at += 500;
            // While nodes use different percentages, each of the two stores admits the whole quota.
            self.losses += u64::from(self.nodes > 1);
        }
        if random.chance(40) {
            self.draw_outages_at(random, 0..=2_000);
        }
    }
}
