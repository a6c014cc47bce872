//! The nodes of a world. They run the shipped limiter with the shipped Redis store.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tollgate::decision::{AppliedOverride, Decision};
use tollgate::overrides::{Effect, Override};
use tollgate::{Clock as _, DecisionSource, HashKey, Limiter, Revision};
use tollgate_backend::{Backend, Counts, PolicyFile, Refunds};
use tollgate_core::{
    Admission, Evaluation, Headers, Limit, RequestAttributes, StoreError, Timestamp,
};
use tollgate_link::simulation::with_network;
use tollgate_policy::LoadedPolicy;
use tollgate_redis::BatcherStatus;
use tollgate_stores::fallback::LocalChargeCounts;

use crate::clock::NodeClock;
use crate::cluster::{Cluster, NodeLinks};
use crate::overrides::NodeOverrides;
use crate::plan::{Kind, OverrideEffect, Plan, Version};
use crate::policy;
use crate::records::{RecordedBackend, Records};

/// The clocks of a node at the end of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeTimes {
    /// The time that the node's own clock shows.
    pub(crate) own: Timestamp,
    /// The time by which the node decides.
    pub(crate) decides: Timestamp,
    /// The number of changes of servers' clocks that the node has detected.
    pub(crate) steps: u64,
}

/// The name of the policy file in messages.
const POLICY_NAME: &str = "world.yaml";

/// What made a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The store made the decision, or the node's deny cache did.
    Store,
    /// The node made the decision without the store. The store did not execute the charge.
    Local,
    /// The node made the decision without the store. The store may have executed the charge.
    Uncertain,
    /// No decision was made.
    Nothing,
}

/// The answer of a node to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) is_admitted: bool,
    pub(crate) source: Source,
    /// The effect that the limit of 120 s had on the request, if the request is charged on this
    /// limit.
    pub(crate) effect: OverrideEffect,
    /// If the request was refused, the time from which a retry should be admitted.
    pub(crate) ready_at: Option<Timestamp>,
    /// Whether the limit of 120 s refused the request.
    pub(crate) is_long_used_up: bool,
    pub(crate) waited: Duration,
}

/// The headers of a request. The only header is `x-user`.
struct User<'a>(&'a str);

impl Headers for User<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        (name == "x-user" && index == 0).then_some(self.0.as_bytes())
    }
}

/// A node of the world, which can be running or not.
#[derive(Debug)]
struct Node {
    clock: NodeClock,
    /// The index of the policy version that the node uses from its next start on.
    version: AtomicUsize,
    running: Mutex<Option<Running>>,
    /// The number of times that the node has ended.
    ended: watch::Sender<u64>,
    /// Whether the node pauses. Until it goes on, it accepts no requests and sends no answers.
    paused: watch::Sender<bool>,
}

/// The limiter and the policy file of a running node.
#[derive(Debug)]
struct Running {
    limiter: Arc<Limiter<RecordedBackend>>,
    file: PolicyFile<RecordedBackend>,
    /// The overrides, in worlds that change them.
    overrides: Option<NodeOverrides<RecordedBackend>>,
}

/// The policy file of a version.
#[derive(Debug)]
struct PolicyVersion {
    text: String,
    /// Whether nodes must refuse to reload the file.
    is_refused: bool,
    /// The content of the file, after a node has started with the file.
    loaded: OnceLock<LoadedPolicy>,
}

/// All nodes of a world.
#[derive(Debug)]
pub(crate) struct Fleet {
    cluster: Arc<Cluster>,
    policies: Vec<PolicyVersion>,
    nodes: Vec<Node>,
    /// Whether nodes share overrides.
    has_overrides: bool,
    /// Descriptions of reloads that nodes wrongly accepted or refused.
    wrong_reloads: Mutex<Vec<String>>,
    pub(crate) records: Arc<Records>,
}

impl Fleet {
    pub(crate) fn new(plan: &Plan, cluster: Arc<Cluster>, start: Instant) -> Self {
        let node = |offset: &i64| Node {
            clock: NodeClock::new(start, *offset),
            version: AtomicUsize::new(0),
            running: Mutex::new(None),
            ended: watch::Sender::new(0),
            paused: watch::Sender::new(false),
        };
        let nodes = plan.node_clocks.iter().map(node).collect();
        let file = |version: &Version| PolicyVersion {
            text: policy::text(plan, version),
            is_refused: version.defect.is_some(),
            loaded: OnceLock::new(),
        };
        let policies = plan.versions.iter().map(file).collect();
        let (wrong_reloads, records) = (Mutex::default(), Arc::new(Records::new()));
        let has_overrides = plan.kind == Kind::Overrides;
        Self { cluster, policies, nodes, has_overrides, wrong_reloads, records }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Starts a node, unless it is already running.
    ///
    /// # Panics
    /// If the policy of the world is invalid.
    pub(crate) fn start(&self, node: usize) {
        let place = &self.nodes[node];
        if place.running.lock().is_some() {
            return;
        }
        let PolicyVersion { text, loaded, .. } =
            &self.policies[place.version.load(Ordering::Relaxed)];
        let parse = || tollgate_policy::parse(POLICY_NAME, text).expect("a valid policy");
        let loaded = loaded.get_or_init(parse).clone();
        let key = HashKey::from_secret(b"the nodes of a world");
        let links = Arc::new(NodeLinks { cluster: Arc::clone(&self.cluster), node });
        let open =
            || Backend::open(&loaded.settings, key.clone(), &loaded.policy, Refunds::ByResponses);
        let backend = with_network(links, open).expect("valid settings");
        let clock = backend.clock(place.clock.clone());
        let store = RecordedBackend { backend, records: Arc::clone(&self.records) };
        let limiter = Limiter::new(Revision::new(loaded.policy, loaded.version), store);
        let limiter = Arc::new(limiter.with_key(key.clone()).with_clock(clock));
        let file = PolicyFile::new(
            Path::new(POLICY_NAME),
            Arc::clone(&limiter),
            loaded.settings,
            Refunds::ByResponses,
        );
        let overrides = self.has_overrides.then(|| NodeOverrides::start(Arc::clone(&limiter), key));
        *place.running.lock() = Some(Running { limiter, file, overrides });
    }

    /// Sets the version of the policy that a node uses from its next start on.
    pub(crate) fn adopt(&self, node: usize, version: usize) {
        self.nodes[node].version.store(version, Ordering::Relaxed);
    }

    /// Makes a node reload its policy from the text of a version.
    pub(crate) fn reload(&self, node: usize, version: usize) {
        let PolicyVersion { text, is_refused, .. } = &self.policies[version];
        if !is_refused {
            self.adopt(node, version);
        }
        let running = self.nodes[node].running.lock();
        let Some(Running { file, .. }) = &*running else { return };
        let before = file.version();
        let wrong = match (file.reload_from(text.clone().into_bytes()), is_refused) {
            (Ok(_), false) => return,
            (Err(_), true) if file.version() == before => return,
            (Err(_), true) => "changed the policy in force by a reload that it refused".to_owned(),
            (Ok(_), true) => "accepted an invalid policy".to_owned(),
            (Err(error), false) => format!("refused a valid policy: {error}"),
        };
        self.wrong_reloads.lock().push(format!("node {node} {wrong}"));
    }

    /// Removes and returns the descriptions of reloads that nodes wrongly accepted or refused.
    pub(crate) fn take_wrong_reloads(&self) -> Vec<String> {
        std::mem::take(&mut self.wrong_reloads.lock())
    }

    /// Waits until the store of a node has connected to its servers, or a server does not answer.
    pub(crate) async fn started(&self, node: usize) {
        if let Some(limiter) = self.limiter(node) {
            limiter.store().backend.started().await;
        }
    }

    /// Ends a node immediately. Its calls in flight are dropped.
    pub(crate) fn stop(&self, node: usize) {
        let place = &self.nodes[node];
        drop(place.running.lock().take());
        place.ended.send_modify(|ended| *ended += 1);
    }

    pub(crate) fn set_paused(&self, node: usize, is_paused: bool) {
        self.nodes[node].paused.send_replace(is_paused);
    }

    pub(crate) fn step_clock(&self, node: usize, millis: i64) {
        self.nodes[node].clock.step(millis);
    }

    /// Returns the units that nodes admitted without the store, and that the store may not have
    /// counted later. That happens if the outcome of the later charge is unknown, or if a node had
    /// too many units to record.
    pub(crate) fn lost_local_units(&self) -> u64 {
        self.local_charges(|counts| counts.unknown + counts.dropped)
    }

    /// Returns the units that nodes admitted without the store, and that the store refused when the
    /// nodes charged them later. The store refused them because the limit was used up.
    pub(crate) fn exceeded_local_units(&self) -> u64 {
        self.local_charges(|counts| counts.exceeded)
    }

    /// Returns the units of quota leases that the store may have counted although no request used
    /// them.
    pub(crate) fn lost_lease_units(&self) -> u64 {
        self.sum(|counts| counts.leases.units_lost)
    }

    /// Returns the units that were charged by refused calls and that nodes could not refund.
    pub(crate) fn unrefunded_units(&self) -> u64 {
        self.sum(|counts| counts.unrefunded)
    }

    fn local_charges(&self, units: fn(LocalChargeCounts) -> u64) -> u64 {
        self.sum(|counts| units(counts.local_charges))
    }

    fn sum(&self, units: impl Fn(&Counts) -> u64) -> u64 {
        let limiters = (0..self.len()).filter_map(|node| self.limiter(node));
        let of_store = |store: &Backend| store.counts().map_or(0, |counts| units(&counts));
        let of_node = |limiter: Arc<Limiter<RecordedBackend>>| -> u64 {
            let stores = limiter.store().backend.base_stores();
            stores.into_iter().map(|(_, store)| of_store(store)).sum()
        };
        limiters.map(of_node).sum()
    }

    /// Makes a node begin a change of an override of the second limit: of the subject with this
    /// name, or of all subjects.
    pub(crate) fn begin_override(
        &self,
        node: usize,
        subject: Option<&str>,
        effect: Option<OverrideEffect>,
        lasts: Option<u64>,
    ) {
        if let Some(Running { overrides: Some(overrides), .. }) = &*self.nodes[node].running.lock()
        {
            overrides.begin(subject, effect, lasts);
        }
    }

    /// Makes a node change an override of the second limit, and waits for the result.
    pub(crate) async fn change_override(
        &self,
        node: usize,
        subject: Option<&str>,
        effect: Option<OverrideEffect>,
    ) -> Result<(), String> {
        let change = match &*self.nodes[node].running.lock() {
            Some(Running { overrides: Some(overrides), .. }) => {
                overrides.change(subject, effect, None)
            }
            _ => return Err("the node does not run".to_owned()),
        };
        change.await
    }

    /// Returns the overrides that are in force at each node.
    pub(crate) fn overrides(&self) -> Vec<Vec<Arc<Override>>> {
        let of_node = |node: &Node| match &*node.running.lock() {
            Some(Running { overrides: Some(overrides), .. }) => overrides.in_force(),
            _ => Vec::new(),
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// Returns the effect of the override of a subject, or of all subjects, at each node.
    pub(crate) fn override_effects(&self, subject: Option<&str>) -> Vec<Option<OverrideEffect>> {
        let of_node = |node: &Node| match &*node.running.lock() {
            Some(Running { overrides: Some(overrides), .. }) => overrides.effect(subject),
            _ => None,
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// Returns the clocks of each running node, and the changes of servers' clocks that it has
    /// detected.
    pub(crate) fn times(&self) -> Vec<NodeTimes> {
        let running = (0..self.len()).filter_map(|node| Some((node, self.limiter(node)?)));
        let times = |(node, limiter): (usize, Arc<Limiter<RecordedBackend>>)| NodeTimes {
            own: self.nodes[node].clock.now(),
            decides: limiter.now(),
            steps: batchers(&limiter).iter().map(|batcher| batcher.clock_steps).sum(),
        };
        running.map(times).collect()
    }

    /// Returns the number of jobs that running nodes rejected because a queue was full.
    pub(crate) fn overloaded(&self) -> u64 {
        let running = (0..self.len()).filter_map(|node| self.limiter(node));
        running.flat_map(|limiter| batchers(&limiter)).map(|it| it.counts.overloaded).sum()
    }

    /// Returns the time that a node uses for its decisions. Returns `None` if the node is not
    /// running.
    pub(crate) fn now(&self, node: usize) -> Option<Timestamp> {
        Some(self.limiter(node)?.now())
    }

    fn limiter(&self, node: usize) -> Option<Arc<Limiter<RecordedBackend>>> {
        self.nodes[node].running.lock().as_ref().map(|running| Arc::clone(&running.limiter))
    }

    /// Sends a request of `subject` to a node. Returns `None` if the node is not running, or if it
    /// ends before it answers.
    pub(crate) async fn check(&self, node: usize, subject: &str, path: &str) -> Option<Answer> {
        let Node { ended, paused, .. } = &self.nodes[node];
        let (mut ended, mut paused) = (ended.subscribe(), paused.subscribe());
        go_on(&mut paused).await;
        let limiter = self.limiter(node)?;
        let check = {
            let headers = User(subject);
            limiter.check(&RequestAttributes {
                method: "GET",
                path,
                query: None,
                host: None,
                peer: None,
                headers: &headers,
            })
        };
        let sent = Instant::now();
        let decision = tokio::select! {
            biased;
            _ = ended.changed() => return None,
            decision = check => decision,
        };
        let waited = sent.elapsed();
        go_on(&mut paused).await;
        let statuses = &decision.evaluation.statuses;
        let refused = statuses.iter().filter(|status| status.admission != Admission::Now);
        let ready_at = refused.clone().filter_map(|status| match status.admission {
            Admission::At(at) => Some(at),
            Admission::Now | Admission::Never => None,
        });
        Some(Answer {
            is_admitted: decision.is_admitted(),
            source: source(decision.source),
            effect: effect(&decision),
            ready_at: ready_at.max(),
            is_long_used_up: refused.clone().any(|status| status.limit.name() == "long"),
            waited,
        })
    }
}

/// Waits while a node pauses.
async fn go_on(paused: &mut watch::Receiver<bool>) {
    // Other worlds must not yield here, because their tasks would run in another order.
    if *paused.borrow() {
        // An error means that the world has ended.
        let _ = paused.wait_for(|is_paused| !is_paused).await;
    }
}

/// Returns the effect that the limit of 120 s had on a decision, from the statuses of the decision.
fn effect(decision: &Decision) -> OverrideEffect {
    let is_long = |limit: &Limit| limit.name() == "long";
    let is_blocked = |applied: &AppliedOverride| {
        is_long(&applied.limit) && applied.definition.effect == Effect::Blocked
    };
    let find = |evaluation: &Evaluation| {
        let status = evaluation.statuses.iter().find(|status| is_long(&status.limit));
        status.map(|status| status.limit.capacity())
    };
    match (find(&decision.evaluation), decision.shadow.as_ref().and_then(find)) {
        (Some(_), _) if decision.overrides.iter().any(is_blocked) => OverrideEffect::Blocked,
        (Some(quota), _) => OverrideEffect::Quota(quota),
        (None, Some(_)) => OverrideEffect::Counted,
        (None, None) => OverrideEffect::Unlimited,
    }
}

/// Returns the status of all batchers of a node.
fn batchers(limiter: &Limiter<RecordedBackend>) -> Vec<BatcherStatus> {
    let shards = limiter.store().backend.status();
    shards.into_iter().flat_map(|shard| shard.batchers).collect()
}

fn source(source: DecisionSource) -> Source {
    match source {
        DecisionSource::Store | DecisionSource::DenyCache => Source::Store,
        DecisionSource::Fallback(StoreError::Unavailable | StoreError::Full)
        | DecisionSource::Overflow => Source::Local,
        DecisionSource::Fallback(_) => Source::Uncertain,
        DecisionSource::Failure(_) => Source::Nothing,
    }
}
