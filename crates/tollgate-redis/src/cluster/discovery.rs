//! Learns again and again who keeps which slots.

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
use super::{ClusterError, ClusterSettings, NodeAddress};
use crate::link::Endpoint;
use crate::script::RuntimeChoice;

/// The shortest time between two looks, however many calls were sent elsewhere meanwhile.
const REFRESH_AT_MOST_EVERY: Duration = Duration::from_millis(100);

/// So many nodes are asked at a time.
const MAX_PROBES: usize = 3;

/// So many looks in a row may find nothing but an older cluster than the one that is known before
/// it counts: it was made anew. Until then, nodes that were cut off have their old say in vain.
const MAX_STALE_PROBES: u32 = 5;

/// What is known of a cluster, shared by those who ask it and the one task that learns it.
#[derive(Debug)]
pub(super) struct SharedMap {
    map: watch::Sender<MapState>,
    /// What hurries the task.
    news: Notify,
    /// The node that knows best, because another one pointed there.
    named: Mutex<Option<NodeAddress>>,
    last_error: Mutex<Option<ClusterError>>,
    importing_groups: ImportingGroups,
    settings: ClusterSettings,
    choice: RuntimeChoice,
}

/// What the task has found.
#[derive(Clone, Debug)]
enum MapState {
    /// Nothing yet: wait, within the deadline.
    Pending,
    /// Nobody to ask.
    Unavailable,
    /// A cluster, which is remembered whoever answers later.
    Map(Arc<SlotMap>),
}

impl SharedMap {
    pub(super) fn new(settings: ClusterSettings, choice: RuntimeChoice) -> Self {
        Self {
            map: watch::channel(MapState::Pending).0,
            news: Notify::new(),
            named: Mutex::default(),
            last_error: Mutex::default(),
            importing_groups: ImportingGroups::default(),
            settings,
            choice,
        }
    }

    /// The map, for which a call that comes first waits until `deadline` at most.
    pub(super) async fn map(&self, deadline: Instant) -> Option<Arc<SlotMap>> {
        let mut findings = self.map.subscribe();
        let found = findings.wait_for(|finding| !matches!(finding, MapState::Pending));
        match &*timeout_at(deadline, found).await.ok()?.ok()? {
            MapState::Map(map) => Some(Arc::clone(map)),
            MapState::Pending | MapState::Unavailable => None,
        }
    }

    /// The map, if there is one.
    pub(super) fn current(&self) -> Option<Arc<SlotMap>> {
        match &*self.map.borrow() {
            MapState::Map(map) => Some(Arc::clone(map)),
            MapState::Pending | MapState::Unavailable => None,
        }
    }

    /// Waits, without a limit of its own, for the first map.
    pub(super) async fn first(&self) {
        let mut findings = self.map.subscribe();
        // An error means that nobody learns any more, which is when the cluster is dropped.
        let _ = findings.wait_for(|finding| matches!(finding, MapState::Map(_))).await;
    }

    /// Why the last look found nothing, if it did.
    pub(super) fn last_error(&self) -> Option<ClusterError> {
        self.last_error.lock().clone()
    }

    /// Has the task look soon: what is known was found wrong, or does not answer.
    pub(super) fn request_refresh(&self) {
        self.news.notify_one();
    }

    /// As [`Self::request_refresh`], and `node` is said to know better.
    pub(super) fn request_refresh_from(&self, node: &NodeAddress) {
        *self.named.lock() = Some(node.clone());
        self.request_refresh();
    }

    /// The group of `node`, which is in none of the `map`: one of its own then; `None` if there are
    /// too many of those.
    pub(super) fn importing_group(&self, node: &NodeAddress) -> Option<Arc<Group>> {
        let alone = GroupLayout { primary: node.clone(), replicas: Vec::new(), slots: Vec::new() };
        self.importing_groups.ask(node, || self.open(&alone))
    }

    fn open(&self, layout: &GroupLayout) -> Group {
        Group::open(layout, &self.settings, self.choice)
    }

    /// Makes `layout` the map. Groups that serve as they are stay, with their connections.
    fn learn(&self, layout: &Layout) {
        let before = self.current();
        let map = SlotMap::new(layout, |wanted| {
            let serves = |group: &Group| group.serves(wanted, &layout.groups);
            let known = before.as_ref().and_then(|map| map.groups().iter().find(|it| serves(it)));
            let known = known.cloned().or_else(|| self.importing_groups.admit(serves));
            if let Some(group) = known {
                group.keeps(&wanted.slots);
                return group;
            }
            Arc::new(self.open(wanted))
        });
        self.importing_groups
            .clear(|group| group.nodes().iter().any(|node| map.group_of(node).is_some()));
        self.map.send_replace(MapState::Map(Arc::new(map)));
    }
}

/// The task that learns.
pub(super) struct Discovery {
    known: Arc<SharedMap>,
    /// The epoch of the map.
    epoch: u64,
    /// How many looks in a row have found an older one.
    older: u32,
    /// Whose turn it is to be asked.
    turn: usize,
}

impl Discovery {
    pub(super) const fn new(known: Arc<SharedMap>) -> Self {
        Self { known, epoch: 0, older: 0, turn: 0 }
    }

    /// Looks again and again: when something was found wrong, but not more often than
    /// [`REFRESH_AT_MOST_EVERY`], and at the latest when the settings say.
    pub(super) async fn run(mut self) {
        let refresh = self.known.settings.refresh;
        loop {
            let found = self.look().await;
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
            // Whichever comes first is reason enough.
            let _ = timeout(rest, self.known.news.notified()).await;
        }
    }

    async fn look(&mut self) -> Result<(), ClusterError> {
        let asked = self.next_to_ask();
        let answer = probe(asked, self.known.settings.link.connect).await?;
        self.check(&answer)?;
        self.known.learn(&answer.layout);
        Ok(())
    }

    /// The node that another one named, then some of all that are known, in turn.
    fn next_to_ask(&mut self) -> Vec<Endpoint> {
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

    /// Refuses what a node says that has not heard of what is known, unless nobody else says more.
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
