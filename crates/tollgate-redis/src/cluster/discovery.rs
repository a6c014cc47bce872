//! Periodic discovery of a cluster's slot layout.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::group::Group;
use super::importing_slots::ImportingGroups;
use super::layout::{GroupLayout, Layout};
use super::slot_map::SlotMap;
use super::topology_probe::{Answer, probe};
use super::{ClusterError, ClusterSettings};
use crate::connection::Endpoint;
use crate::node_address::NodeAddress;
use crate::script::RuntimeChoice;

/// The shortest time between two discoveries, even if many calls are redirected in this time.
const REFRESH_AT_MOST_EVERY: Duration = Duration::from_millis(100);

/// The number of nodes that one discovery queries at the same time.
const MAX_PROBES: usize = 3;

/// The most discoveries in a row that are ignored because they returned an older epoch than the
/// known epoch. Such answers may come from nodes that were cut off from the cluster. If one more
/// discovery returns an older epoch, the cluster was created again, and the older layout is
/// accepted.
const MAX_STALE_PROBES: u32 = 5;

/// The known layout of a cluster, which the store and the discovery task share.
#[derive(Debug)]
pub(super) struct SharedMap {
    map: watch::Sender<MapState>,
    /// Wakes the discovery task early.
    changed: Notify,
    /// The node that the next discovery queries first, because a redirect named it. `None` if no
    /// redirect has named a node since the last discovery.
    named: Mutex<Option<NodeAddress>>,
    last_error: Mutex<Option<ClusterError>>,
    importing_groups: ImportingGroups,
    settings: ClusterSettings,
    choice: RuntimeChoice,
}

/// The result of the discoveries so far.
#[derive(Clone, Debug)]
enum MapState {
    /// No result yet. Callers wait, within their deadlines.
    Pending,
    /// No node answered the discovery.
    Unavailable,
    /// The last discovered cluster layout. This layout stays in use even if later discoveries fail.
    Map(Arc<SlotMap>),
}

impl SharedMap {
    pub(super) fn new(settings: ClusterSettings, choice: RuntimeChoice) -> Self {
        Self {
            map: watch::channel(MapState::Pending).0,
            changed: Notify::new(),
            named: Mutex::default(),
            last_error: Mutex::default(),
            importing_groups: ImportingGroups::default(),
            settings,
            choice,
        }
    }

    /// Returns the slot map. Before the first discovery has finished, waits for its result until
    /// `deadline`. Returns `None` if `deadline` passes first, or if no discovery has succeeded.
    pub(super) async fn map(&self, deadline: Instant) -> Option<Arc<SlotMap>> {
        let mut findings = self.map.subscribe();
        let found = findings.wait_for(|finding| !matches!(finding, MapState::Pending));
        match &*timeout_at(deadline, found).await.ok()?.ok()? {
            MapState::Map(map) => Some(Arc::clone(map)),
            MapState::Pending | MapState::Unavailable => None,
        }
    }

    /// Returns the slot map, or `None` if no discovery has succeeded yet.
    pub(super) fn current(&self) -> Option<Arc<SlotMap>> {
        match &*self.map.borrow() {
            MapState::Map(map) => Some(Arc::clone(map)),
            MapState::Pending | MapState::Unavailable => None,
        }
    }

    /// Waits, without a time limit, for the first slot map.
    pub(super) async fn first(&self) {
        let mut findings = self.map.subscribe();
        // An error of this wait means that the discovery task has ended, because the cluster was
        // dropped.
        let _ = findings.wait_for(|finding| matches!(finding, MapState::Map(_))).await;
    }

    /// Returns the reason why the last discovery failed, or `None` if it succeeded.
    pub(super) fn last_error(&self) -> Option<ClusterError> {
        self.last_error.lock().clone()
    }

    /// Requests that a discovery starts soon. Called when the slot map was wrong or a node does not
    /// answer.
    pub(super) fn request_refresh(&self) {
        self.changed.notify_one();
    }

    /// Requests that a discovery starts soon, as [`Self::request_refresh`] does. This discovery
    /// queries `node` first.
    pub(super) fn request_refresh_from(&self, node: &NodeAddress) {
        *self.named.lock() = Some(node.clone());
        self.request_refresh();
    }

    /// Returns the group of `node`, for a node that is in no group of the slot map, such as a node
    /// that is about to get its first slot. Opens the group if it does not exist yet. The group
    /// contains no other node. Returns `None` if there are too many of these groups.
    pub(super) fn importing_group(&self, node: &NodeAddress) -> Option<Arc<Group>> {
        let group = GroupLayout { primary: node.clone(), replicas: Vec::new(), slots: Vec::new() };
        self.importing_groups.get_or_open(node, || self.open(&group))
    }

    fn open(&self, layout: &GroupLayout) -> Group {
        Group::open(layout, &self.settings, self.choice)
    }

    /// Replaces the slot map by the map of `layout`. Groups that have not changed keep their
    /// connections.
    fn learn(&self, layout: &Layout) {
        let before = self.current();
        let map = SlotMap::new(layout, |wanted| {
            let serves = |group: &Group| group.serves(wanted, &layout.groups);
            let known = before.as_ref().and_then(|map| map.groups().iter().find(|it| serves(it)));
            if let Some(group) = known {
                group.keeps(&wanted.slots);
                return Arc::clone(group);
            }
            let admitted = self.importing_groups.admit(serves);
            let group = admitted.unwrap_or_else(|| Arc::new(self.open(wanted)));
            group.keeps(&wanted.slots);
            // The slots may have been without a primary since before this group was opened.
            let owners = before.iter().flat_map(|map| map.owners(&wanted.slots));
            owners.for_each(|owner| group.take_over(owner));
            group
        });
        self.importing_groups
            .clear(|group| group.nodes().iter().any(|node| map.group_of(node).is_some()));
        self.map.send_replace(MapState::Map(Arc::new(map)));
    }
}

/// A task that discovers the slot layout of a cluster periodically.
pub(super) struct Discovery {
    known: Arc<SharedMap>,
    /// The cluster epoch of the current slot map.
    epoch: u64,
    /// The number of consecutive discoveries that returned an older epoch than the known epoch.
    older: u32,
    /// The index, in the rotation, of the node that the next discovery queries first.
    turn: usize,
}

impl Discovery {
    pub(super) const fn new(known: Arc<SharedMap>) -> Self {
        Self { known, epoch: 0, older: 0, turn: 0 }
    }

    /// Runs discoveries forever. A discovery starts soon after a request, but two discoveries start
    /// at least [`REFRESH_AT_MOST_EVERY`] apart. Without a request, a discovery starts after the
    /// refresh time of the settings.
    pub(super) async fn run(mut self) {
        let refresh = self.known.settings.refresh;
        loop {
            let found = self.refresh().await;
            let patience = if found.is_ok() { refresh } else { REFRESH_AT_MOST_EVERY };
            let lost = found.err();
            if lost.is_some() {
                self.known.map.send_if_modified(|finding| {
                    let is_news = matches!(finding, MapState::Pending);
                    if is_news {
                        *finding = MapState::Unavailable;
                    }
                    is_news
                });
            }
            *self.known.last_error.lock() = lost;
            sleep(REFRESH_AT_MOST_EVERY).await;
            let rest = patience.saturating_sub(REFRESH_AT_MOST_EVERY);
            // Continue after the notification or after the timeout, whichever comes first.
            let _ = timeout(rest, self.known.changed.notified()).await;
        }
    }

    async fn refresh(&mut self) -> Result<(), ClusterError> {
        let node = self.next_to_query();
        let answer = probe(node, self.known.settings.link.connect).await?;
        self.check(&answer)?;
        self.known.learn(&answer.layout);
        Ok(())
    }

    /// Returns the nodes that the next discovery queries: the node that a redirect named, and then
    /// some of the known nodes in rotation.
    fn next_to_query(&mut self) -> Vec<Endpoint> {
        let seeds = &self.known.settings.seeds;
        let like = seeds.first();
        let map = self.known.current();
        let groups = map.iter().flat_map(|map| map.groups());
        let nodes = groups.flat_map(|group| group.nodes()).map(|node| node.endpoint(like));
        let mut all: Vec<_> = nodes.collect();
        all.extend(seeds.iter().filter(|seed| !all.contains(seed)).cloned().collect::<Vec<_>>());
        let named = self.known.named.lock().take().map(|node| node.endpoint(like));
        let first = self.turn;
        self.turn = first.wrapping_add(MAX_PROBES);
        let in_turn = (0..all.len()).map(|step| &all[first.wrapping_add(step) % all.len()]);
        let others = in_turn.filter(|endpoint| named.as_ref() != Some(endpoint)).cloned();
        named.clone().into_iter().chain(others).take(MAX_PROBES).collect()
    }

    /// Rejects an answer with an older epoch than the known epoch. After [`MAX_STALE_PROBES`]
    /// rejected answers in a row, accepts the next answer with an older epoch.
    fn check(&mut self, answer: &Answer) -> Result<(), ClusterError> {
        let epoch = answer.view.epoch;
        if epoch < self.epoch && self.older < MAX_STALE_PROBES {
            self.older += 1;
            return Err(ClusterError::Stale { address: answer.address.clone() });
        }
        (self.epoch, self.older) = (epoch, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::Millis;

    use super::*;
    use crate::connection::Replication;
    use crate::slot::SLOTS;

    /// Returns the address of a node that does not exist.
    fn node(port: u16) -> NodeAddress {
        NodeAddress::new("127.0.0.1", port).unwrap()
    }

    /// Returns a layout with one group, which owns all slots.
    fn layout(primary: u16, replica: u16) -> Layout {
        let (primary, replicas) = (node(primary), vec![node(replica)]);
        Layout { groups: vec![GroupLayout { primary, replicas, slots: vec![0..=SLOTS - 1] }] }
    }

    fn first_group(known: &SharedMap) -> Arc<Group> {
        Arc::clone(&known.current().unwrap().groups()[0])
    }

    fn begin(group: &Group, id: &str, at: Instant) {
        let replication = Replication::leading(id, 7, None);
        group.primary().link().epochs().begin(Some(&replication), at);
    }

    /// Returns a map with the group of the nodes 1 and 2. The group lost its connection 10 s ago.
    fn lost(now: Instant) -> SharedMap {
        let known = SharedMap::new(ClusterSettings::new([]), RuntimeChoice::Best);
        known.learn(&layout(1, 2));
        let group = first_group(&known);
        begin(&group, "x", now - Duration::from_secs(30));
        group.primary().link().epochs().leave(now - Duration::from_secs(10));
        known
    }

    /// The defect: a group that was opened during an outage, because a replica was added, knew of
    /// no outage.
    #[tokio::test]
    async fn an_outage_continues_in_the_group_that_takes_over_the_slots() {
        let now = Instant::now();
        let known = lost(now);
        known.learn(&layout(1, 3));
        let group = first_group(&known);
        assert!(group.has(&node(3)) && !group.has(&node(2)));
        begin(&group, "y", now);
        let outage = group.primary().outage();
        assert!((Millis::from_secs(10)..Millis::from_secs(60)).contains(&outage), "{outage:?}");
    }

    /// The same with a group that was opened for a redirect, before the layout was discovered.
    #[tokio::test]
    async fn an_outage_continues_in_the_group_of_a_node_that_a_redirect_named() {
        let now = Instant::now();
        let known = lost(now);
        let group = known.importing_group(&node(3)).unwrap();
        begin(&group, "y", now);
        assert_eq!(group.primary().outage(), Millis::ZERO);
        let (primary, replicas) = (node(3), Vec::new());
        let slots = vec![0..=SLOTS - 1];
        known.learn(&Layout { groups: vec![GroupLayout { primary, replicas, slots }] });
        assert!(Arc::ptr_eq(&group, &first_group(&known)));
        let outage = group.primary().outage();
        assert!((Millis::from_secs(10)..Millis::from_secs(60)).contains(&outage), "{outage:?}");
    }
}
