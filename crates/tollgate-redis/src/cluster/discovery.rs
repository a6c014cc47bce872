//! Learns again and again who keeps which slots.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::group::Group;
use super::guests::Guests;
use super::layout::{GroupLayout, Layout};
use super::slot_map::SlotMap;
use super::survey::{Answer, survey};
use super::{ClusterError, ClusterSettings, NodeAddress};
use crate::link::Endpoint;
use crate::script::Choice;

/// The shortest time between two looks, however many calls were sent elsewhere meanwhile.
const REFRESH_AT_MOST_EVERY: Duration = Duration::from_millis(100);

/// So many nodes are asked at a time.
const ASKED: usize = 3;

/// So many looks in a row may find nothing but an older cluster than the one that is known before
/// it counts: it was made anew. Until then, nodes that were cut off have their old say in vain.
const OLDER_LOOKS: u32 = 5;

/// What is known of a cluster, shared by those who ask it and the one task that learns it.
#[derive(Debug)]
pub(super) struct Known {
    map: watch::Sender<Finding>,
    /// What hurries the task.
    news: Notify,
    /// The node that knows best, because another one pointed there.
    named: Mutex<Option<NodeAddress>>,
    last_error: Mutex<Option<ClusterError>>,
    guests: Guests,
    settings: ClusterSettings,
    choice: Choice,
}

/// What the task has found.
#[derive(Clone, Debug)]
enum Finding {
    /// Nothing yet: wait, within the deadline.
    Sought,
    /// Nobody to ask.
    Nothing,
    /// A cluster, which is remembered whoever answers later.
    Map(Arc<SlotMap>),
}

impl Known {
    pub(super) fn new(settings: ClusterSettings, choice: Choice) -> Self {
        Self {
            map: watch::channel(Finding::Sought).0,
            news: Notify::new(),
            named: Mutex::default(),
            last_error: Mutex::default(),
            guests: Guests::default(),
            settings,
            choice,
        }
    }

    /// The map, for which a call that comes first waits until `deadline` at most.
    pub(super) async fn map(&self, deadline: Instant) -> Option<Arc<SlotMap>> {
        let mut findings = self.map.subscribe();
        let found = findings.wait_for(|finding| !matches!(finding, Finding::Sought));
        match &*timeout_at(deadline, found).await.ok()?.ok()? {
            Finding::Map(map) => Some(Arc::clone(map)),
            Finding::Sought | Finding::Nothing => None,
        }
    }

    /// The map, if there is one.
    pub(super) fn current(&self) -> Option<Arc<SlotMap>> {
        match &*self.map.borrow() {
            Finding::Map(map) => Some(Arc::clone(map)),
            Finding::Sought | Finding::Nothing => None,
        }
    }

    /// Waits, without a limit of its own, for the first map.
    pub(super) async fn first(&self) {
        let mut findings = self.map.subscribe();
        // An error means that nobody learns any more, which is when the cluster is dropped.
        let _ = findings.wait_for(|finding| matches!(finding, Finding::Map(_))).await;
    }

    /// Why the last look found nothing, if it did.
    pub(super) fn last_error(&self) -> Option<ClusterError> {
        self.last_error.lock().clone()
    }

    /// Has the task look soon: what is known was found wrong, or does not answer.
    pub(super) fn doubt(&self) {
        self.news.notify_one();
    }

    /// As [`Self::doubt`], and `node` is said to know better.
    pub(super) fn doubt_for(&self, node: &NodeAddress) {
        *self.named.lock() = Some(node.clone());
        self.doubt();
    }

    /// The group of `node`, which is in none of the `map`: one of its own then; `None` if there are
    /// too many of those.
    pub(super) fn guest(&self, node: &NodeAddress) -> Option<Arc<Group>> {
        let alone = GroupLayout { primary: node.clone(), replicas: Vec::new(), slots: Vec::new() };
        self.guests.ask(node, || self.open(&alone))
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
            let known = known.cloned().or_else(|| self.guests.admit(serves));
            if let Some(group) = known {
                group.keeps(&wanted.slots);
                return group;
            }
            Arc::new(self.open(wanted))
        });
        self.guests.clear(|group| group.nodes().iter().any(|node| map.group_of(node).is_some()));
        self.map.send_replace(Finding::Map(Arc::new(map)));
    }
}

/// The task that learns.
pub(super) struct Discovery {
    known: Arc<Known>,
    /// The epoch of the map.
    epoch: u64,
    /// How many looks in a row have found an older one.
    older: u32,
    /// Whose turn it is to be asked.
    turn: usize,
}

impl Discovery {
    pub(super) const fn new(known: Arc<Known>) -> Self {
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
                    let is_news = matches!(finding, Finding::Sought);
                    if is_news {
                        *finding = Finding::Nothing;
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
        let answer = survey(asked, self.known.settings.link.connect).await?;
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
        self.turn = first.wrapping_add(ASKED);
        let in_turn = (0..all.len()).map(|step| &all[first.wrapping_add(step) % all.len()]);
        let others = in_turn.filter(|endpoint| named.as_ref() != Some(endpoint)).cloned();
        named.clone().into_iter().chain(others).take(ASKED).collect()
    }

    /// Refuses what a node says that has not heard of what is known, unless nobody else says more.
    fn check(&mut self, answer: &Answer) -> Result<(), ClusterError> {
        let epoch = answer.view.epoch;
        if epoch < self.epoch && self.older < OLDER_LOOKS {
            self.older += 1;
            return Err(ClusterError::Old { address: answer.address.clone() });
        }
        (self.epoch, self.older) = (epoch, 0);
        Ok(())
    }
}
