//! Worlds in which nodes join, leave and pause.

use tollgate_conformance::Random;

use super::{Action, Defect, Plan, Version};

impl Plan {
    /// Adds a node that joins, a node that leaves for good, nodes that pause, and outages. In most
    /// worlds, the nodes restart with the new number of nodes.
    pub(super) fn draw_membership(&mut self, random: &mut Random) {
        let joining = random.chance(60).then_some(self.nodes - 1);
        let mut running: Vec<_> = (0..self.nodes).filter(|node| Some(*node) != joining).collect();
        self.absent_first.extend(joining);
        self.versions[0].nodes = Some(running.len());
        let mut stated = vec![running.len(); self.nodes];
        let mut at = random.within(200..=2_000);
        if let Some(node) = joining {
            running.push(node);
            stated[node] = running.len();
            let version = self.push_node_count(running.len());
            self.push(at, Action::Adopt { node, version });
            self.push(at, Action::StartNode(node));
            at = self.draw_node_count(random, at, &running[..running.len() - 1], &mut stated);
        }
        if running.len() > 1 && random.chance(60) {
            at += random.within(200..=2_000);
            let node = running.remove(random.within(0..=running.len() as u64 - 1) as usize);
            self.push(at, Action::StopNode(node));
            self.absent_last.push(node);
            self.restarts += 1;
            self.push_node_count(running.len());
            at = self.draw_node_count(random, at, &running, &mut stated);
        }
        self.draw_pauses(random, at);
        self.draw_outages(random, 0..=2);
    }

    /// Adds a version of the policy that states `nodes` nodes. Returns its index.
    fn push_node_count(&mut self, nodes: usize) -> usize {
        let defect = Some(Defect::OtherNodes);
        self.versions.push(Version { nodes: Some(nodes), defect, ..self.versions[0].clone() });
        self.versions.len() - 1
    }

    /// Adds reloads of the newest version, which nodes must refuse, and restarts of the nodes
    /// `running` with this version, one after another. `stated` contains the number of nodes in the
    /// policy of each node. Returns the time of the last change.
    fn draw_node_count(
        &mut self,
        random: &mut Random,
        mut at: u64,
        running: &[usize],
        stated: &mut [usize],
    ) -> u64 {
        let version = self.versions.len() - 1;
        let count = self.versions[version].nodes.unwrap_or(self.nodes);
        for node in running.iter().copied() {
            if stated[node] == count {
                continue;
            }
            if random.chance(50) {
                at += random.within(0..=500);
                self.push(at, Action::Reload { node, version });
            }
            if random.chance(60) {
                at += random.within(10..=1_000);
                at = self.push_restart(random, at, node, version);
                stated[node] = count;
            }
        }
        at
    }

    /// Adds pauses of nodes, which begin before `until`.
    fn draw_pauses(&mut self, random: &mut Random, until: u64) {
        for _ in 0..random.within(0..=2) {
            let (node, from) = (self.any_node(random), random.within(0..=until));
            let to = from + random.one_of(&[50, 200, 1_000, 5_000]);
            self.push(from, Action::PauseNode { node, on: true });
            self.push(to, Action::PauseNode { node, on: false });
        }
    }
}
