//! Worlds in which operators change an override.

use tollgate_conformance::Random;

use super::{Action, Plan, Version};

impl Plan {
    /// Adds changes of the override of the second limit at several nodes, outages, nodes that end,
    /// and a loss of the shared document with the overrides.
    pub(super) fn draw_overrides(&mut self, random: &mut Random) {
        let mut at = 0;
        for _ in 0..random.within(1..=5) {
            at += random.within(100..=2_000);
            let quota = (!random.chance(30)).then(|| random.within(20..=60));
            self.push_override(random, at, quota);
        }
        if random.chance(40) {
            self.draw_changes_while_down(random);
        }
        if random.chance(60) {
            let quota = random.within(20..=60);
            self.last_override = Some(quota);
            self.last_version = self.versions.len();
            self.push_version(quota);
        }
        self.draw_outages(random, 0..=2);
        if random.chance(20) {
            self.draw_restarts(random);
        }
        if random.chance(20) {
            let (server, lost) = (self.any_primary(random), random.within(0..=6_000));
            self.push(lost, Action::Flush(server));
            self.losses += 1;
        }
    }

    /// Adds an override that is set while a primary is down, and removed by another node or again
    /// while a primary is down.
    fn draw_changes_while_down(&mut self, random: &mut Random) {
        let (server, down) = (self.any_primary(random), random.within(500..=5_000));
        self.push(down, Action::Crash { server, silent: random.chance(50) });
        let (set, quota) = (down + random.within(1..=1_000), random.within(20..=60));
        self.push_override(random, set, Some(quota));
        let removed = set + random.within(1..=3_000);
        self.push_override(random, removed, None);
        let back = set + random.within(1..=3_000);
        self.push(back, Action::Start { server, has_data: true });
    }

    /// Adds a change of the override at any node: to `quota`, or its removal. Some overrides end by
    /// themselves.
    fn push_override(&mut self, random: &mut Random, at: u64, quota: Option<u64>) {
        let node = self.any_node(random);
        let lasts = random.one_of(&[None, None, Some(1_000), Some(4_000)]);
        self.push(at, Action::Override { node, quota, lasts });
        if let Some(quota) = quota {
            self.push_version(quota);
        }
    }

    /// Adds a version of the policy for each quota of an override, because bounds are computed from
    /// the quotas of all versions. No node loads these versions.
    fn push_version(&mut self, quota: u64) {
        let base = self.versions[0].clone();
        self.versions.push(Version { quotas: (base.quotas.0, quota), ..base });
    }
}
