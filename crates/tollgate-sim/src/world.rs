//! Runs a world through its phases.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tollgate_backend::OVERRIDES_PERIOD;
use tollgate_conformance::Random;
use tollgate_link::simulation::take_longest_queue;

use crate::clients::{Client, Load};
use crate::cluster::Cluster;
use crate::judge::{Figures, Judge, Lost};
use crate::node::Fleet;
use crate::phase::Phase;
use crate::plan::{Action, Kind, Plan, StoreKind};
use crate::trace::{Event, Trace};

/// The time that a world gets at its start. In this time, every node has queried every server.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// The longest time from the last fault until all nodes use the store again. In this time, nodes
/// stop using an old primary, test whether their servers answer, replay charges, and charge to the
/// store the units that they admitted without it.
const RECOVERED_AFTER: Duration = Duration::from_secs(6);

/// The duration of each phase without faults.
const CALM: Duration = Duration::from_millis(2_500);

/// The largest difference between two estimates of the clock of a memcached server.
const MEMCACHED_CLOCK_ERROR: Duration = Duration::from_millis(2_250);

/// The virtual time that a run may take in addition to its phase with faults. Only a run with a
/// decision that never ends takes longer.
const PATIENCE: Duration = Duration::from_secs(600);

/// The time that a node may need in addition to [`OVERRIDES_PERIOD`] to read a changed override.
const OVERRIDES_MARGIN: Duration = Duration::from_millis(100);

/// The result of running a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The violations of the requirements. The list is empty if the world satisfied all
    /// requirements.
    pub violations: Vec<String>,
    /// Numbers that describe the run.
    pub figures: Figures,
    /// The events of the run, or an empty list if they were not recorded.
    pub events: Vec<Event>,
}

/// Runs the world of `plan`. Records its events if `is_traced` is set.
///
/// # Panics
/// If the runtime cannot be created.
#[must_use]
pub fn run(plan: &Plan, is_traced: bool) -> Outcome {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    // In Tokio, only unstable builds can seed the order in which tasks of the same ms are woken.
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&plan.seed.to_le_bytes()));
    let runtime = builder.build().expect("a runtime without I/O");
    runtime.block_on(async {
        tollgate_link::simulation::set_seed(plan.seed);
        // A world that ended before on this thread may have panicked.
        let _ = take_longest_queue();
        World::new(plan, is_traced).run().await
    })
}

struct World<'p> {
    plan: &'p Plan,
    random: Random,
    cluster: Arc<Cluster>,
    fleet: Arc<Fleet>,
    judge: Arc<Judge>,
    trace: Trace,
}

impl<'p> World<'p> {
    fn new(plan: &'p Plan, is_traced: bool) -> Self {
        let start = Instant::now();
        let trace = Trace::new(start, is_traced);
        let cluster = Cluster::new(plan, start, trace.clone());
        let fleet = Arc::new(Fleet::new(plan, Arc::clone(&cluster), start));
        let random = Random::new(plan.seed ^ 0x6c6f_6164);
        let judge = Arc::new(Judge::new(plan));
        Self { plan, random, cluster, fleet, judge, trace }
    }

    async fn run(mut self) -> Outcome {
        let longest = Duration::from_millis(self.plan.faults_last) + PATIENCE;
        if timeout(longest, self.run_phases()).await.is_err() {
            self.judge.broken(format_args!("the world did not end within {longest:?}"));
        }
        self.judge.check_queues(take_longest_queue(), self.fleet.overloaded());
        self.judge.check_clocks(&self.fleet.times(), &self.cluster.primary_times());
        self.fleet.take_wrong_reloads().iter().for_each(|wrong| self.judge.broken(wrong));
        let histories = self.fleet.records.take_histories();
        let lost = Lost {
            local: self.lost_local_units(),
            exceeded: self.fleet.exceeded_local_units(),
            leased: self.fleet.lost_lease_units(),
            unrefunded: self.fleet.unrefunded_units(),
        };
        let (figures, violations) = self.judge.finish(histories, lost);
        Outcome { violations, figures, events: self.trace.events() }
    }

    async fn run_phases(&mut self) {
        self.note("nodes start");
        for node in (0..self.fleet.len()).filter(|node| !self.plan.absent_first.contains(node)) {
            self.fleet.start(node);
        }
        for node in 0..self.fleet.len() {
            self.fleet.started(node).await;
        }
        sleep(SETTLED_AFTER).await;
        self.load(Phase::Before, CALM).await;
        if !self.plan.actions.is_empty() {
            let lasts = Duration::from_millis(self.plan.faults_last);
            let (plan, cluster) = (self.plan, Arc::clone(&self.cluster));
            let fleet = Arc::clone(&self.fleet);
            self.judge.begin_faults();
            let begun = Instant::now();
            let clients: Vec<_> = (0..fleet.len())
                .map(|node| self.client(node, Phase::During, begun, begun + lasts))
                .collect();
            let faults = async move {
                let mut callers = JoinSet::new();
                for (at, action) in &plan.actions {
                    sleep_until(begun + Duration::from_millis(*at)).await;
                    act(&cluster, &fleet, *action);
                    if let Action::Burst { node, calls, subjects } = *action {
                        clients[node].burst(calls, subjects, &mut callers);
                    }
                }
                callers
            };
            let (mut callers, ()) = tokio::join!(faults, self.load(Phase::During, lasts));
            self.ended(&mut callers).await;
            self.heal();
            self.load(Phase::Recovering, RECOVERED_AFTER).await;
            self.drain().await;
            if self.plan.kind == Kind::Overrides {
                self.settle_overrides().await;
            }
            self.load(Phase::After, CALM).await;
        }
    }

    /// Returns the units that nodes admitted without the store, and that the store does not count.
    fn lost_local_units(&self) -> u64 {
        let lost = self.fleet.lost_local_units();
        // If a version of the policy or an override raised the quota, the units that the store
        // refused because of the old quota are also not counted.
        let (least, most) = self.plan.all_quotas();
        if least < most { lost + self.fleet.exceeded_local_units() } else { lost }
    }

    fn note(&self, what: &str) {
        self.trace.record(|| ("world".to_owned(), what.to_owned()));
    }

    /// Lets all callers send requests for the time `lasts`.
    async fn load(&mut self, phase: Phase, lasts: Duration) {
        self.note(&format!("{phase:?}"));
        self.fleet.records.set_phase(phase);
        let begun = Instant::now();
        let Plan { pause, pause_after_refusal, subject_life, .. } = *self.plan;
        let load = Load { pause, pause_after_refusal, subject_life };
        let mut callers = JoinSet::new();
        for node in 0..self.fleet.len() {
            let client = self.client(node, phase, begun, begun + lasts);
            for _ in 0..self.plan.callers {
                let random = Random::new(self.random.bits());
                callers.spawn(client.clone().call(random, load));
            }
            if phase.is_calm() {
                callers.spawn(client.retry(self.retry_tolerance()));
            }
        }
        self.ended(&mut callers).await;
    }

    /// Returns the time by which a node may refuse a request too long. With memcached, a node that
    /// decides by the server's clock knows its time only to 2.25 s.
    fn retry_tolerance(&self) -> Duration {
        let is_estimated =
            self.plan.kind == Kind::ServerClocks && self.plan.store == StoreKind::Memcached;
        if is_estimated { MEMCACHED_CLOCK_ERROR } else { Duration::ZERO }
    }

    /// Waits until all `callers` have ended.
    async fn ended(&self, callers: &mut JoinSet<()>) {
        while let Some(ended) = callers.join_next().await {
            if let Err(error) = ended {
                self.judge.broken(format_args!("a request panicked: {error}"));
            }
        }
    }

    fn client(&self, node: usize, phase: Phase, begun: Instant, until: Instant) -> Client {
        let (fleet, judge) = (Arc::clone(&self.fleet), Arc::clone(&self.judge));
        Client { fleet, judge, trace: self.trace.clone(), node, phase, begun, until }
    }

    /// Ends all faults. After that, each shard has one primary. Only if the plan has two primaries
    /// until the end, the second one stays.
    fn heal(&self) {
        self.trace.fault(|| ("world".to_owned(), "all faults end".to_owned()));
        let (plan, cluster) = (self.plan, &*self.cluster);
        for server in 0..plan.shards * plan.servers_per_shard {
            act(cluster, &self.fleet, Action::Slow { server, millis: 0 });
            act(cluster, &self.fleet, Action::Full { server, on: false });
            act(cluster, &self.fleet, Action::Busy { server, on: false });
            act(cluster, &self.fleet, Action::Detach { server, on: false });
            if !cluster.is_alive(server) {
                act(cluster, &self.fleet, Action::Start { server, has_data: true });
            }
        }
        // The indexes of the sentinels follow those of the servers.
        for server in 0..plan.shards * plan.servers_per_shard + plan.sentinels {
            act(cluster, &self.fleet, Action::Thaw(server));
            for node in 0..plan.nodes {
                act(cluster, &self.fleet, Action::BlockRequests { node, server, on: false });
                act(cluster, &self.fleet, Action::BlockReplies { node, server, on: false });
            }
        }
        if plan.store == StoreKind::Cluster {
            let servers = 0..plan.shards * plan.servers_per_shard;
            servers.clone().for_each(|server| act(cluster, &self.fleet, Action::EndMove(server)));
            servers.for_each(|server| act(cluster, &self.fleet, Action::Gossip(server)));
        }
        for node in self.last_nodes() {
            if plan.kind == Kind::Membership {
                act(cluster, &self.fleet, Action::PauseNode { node, on: false });
            }
            act(cluster, &self.fleet, Action::StartNode(node));
        }
    }

    /// Returns the nodes that run at the end.
    fn last_nodes(&self) -> Vec<usize> {
        (0..self.plan.nodes).filter(|node| !self.plan.absent_last.contains(node)).collect()
    }

    /// Checks that all nodes have the same overrides, and makes the last changes of the overrides,
    /// each at another node.
    async fn settle_overrides(&self) {
        let before = self.fleet.overrides();
        if before.iter().any(|other| *other != before[0]) {
            self.judge.broken(format_args!("the nodes have different overrides: {before:?}"));
        }
        let last = &self.plan.last_overrides;
        let mut changes: Vec<_> = last.iter().map(|(of, effect)| (*of, Some(*effect))).collect();
        if !last.iter().any(|(subject, _)| subject.is_none()) {
            changes.push((None, None));
        }
        for (index, (subject, effect)) in changes.iter().enumerate() {
            let (node, subject) = (index % self.fleet.len(), subject.map(last_subject));
            let change = self.fleet.change_override(node, subject.as_deref(), *effect);
            if let Err(error) = change.await {
                self.judge.broken(format_args!("an override could not be changed: {error}"));
            }
        }
        sleep(OVERRIDES_PERIOD + OVERRIDES_MARGIN).await;
        for (subject, effect) in changes {
            let subject = subject.map(last_subject);
            let after = self.fleet.override_effects(subject.as_deref());
            if after.iter().any(|other| *other != effect) {
                self.judge.broken(format_args!(
                    "the nodes have the overrides {after:?} of {subject:?}, not {effect:?}"
                ));
            }
        }
    }

    /// Sends requests for each subject of the faults until the subject's limit is used up.
    async fn drain(&self) {
        self.note("the rest of every limit is asked for");
        let (now, nodes) = (Instant::now(), self.last_nodes());
        for (index, subject) in self.judge.begin_drain().into_iter().enumerate() {
            let client = self.client(nodes[index % nodes.len()], Phase::During, now, now);
            client.drain(&subject, self.plan.all_quotas().1 * 3).await;
        }
    }
}

/// Returns the name of a subject of the last phase.
fn last_subject(number: u64) -> String {
    Phase::After.subject(number)
}

/// Returns the command that runs the world of `seed` again and prints its events.
#[must_use]
pub fn replay_command(seed: u64) -> String {
    format!(
        "RUSTFLAGS=\"--cfg tokio_unstable\" cargo run --profile sim -p tollgate-sim -- --seed {seed} \
         --trace"
    )
}

/// Executes an action of the plan.
fn act(cluster: &Cluster, fleet: &Fleet, action: Action) {
    cluster.trace.fault(|| {
        let who = match action {
            Action::StopNode(node)
            | Action::StartNode(node)
            | Action::PauseNode { node, .. }
            | Action::Burst { node, .. }
            | Action::StepNode { node, .. }
            | Action::Reload { node, .. }
            | Action::Adopt { node, .. }
            | Action::Override { node, .. } => format!("node {node}"),
            _ => action.server().map_or("world", |server| cluster.name_of(server)).to_owned(),
        };
        (who, format!("{action:?}"))
    });
    let network = &cluster.network;
    match action {
        Action::BlockRequests { node, server, on } => {
            network.set_blocked(node, cluster.party(server), on);
        }
        Action::BlockReplies { node, server, on } => {
            network.set_blocked(cluster.party(server), node, on);
        }
        Action::Slow { server, millis } => network.set_slow(cluster.party(server), millis),
        Action::Disconnect(server) => cluster.disconnect(server),
        Action::Freeze(server) => cluster.set_frozen(server, true),
        Action::Thaw(server) => cluster.set_frozen(server, false),
        Action::Crash { server, silent } => cluster.crash(server, silent),
        Action::Start { server, has_data } => cluster.start(server, has_data),
        Action::Promote(server) => cluster.promote(server),
        Action::Follow { server, primary } => {
            cluster.follow(server, primary);
            cluster.disconnect(server);
        }
        Action::Full { server, on } => cluster.with(server, |server| server.is_full = on),
        Action::ForgetStep(server) => cluster.with(server, crate::server::Server::forget_step),
        Action::Busy { server, on } => cluster.with(server, |server| server.is_busy = on),
        Action::Flush(server) => cluster.flush(server),
        Action::Evict(server) => cluster.evict(server),
        Action::Detach { server, on } => cluster.with(server, |it| it.set_detached(on)),
        Action::StopNode(node) => fleet.stop(node),
        Action::StartNode(node) => fleet.start(node),
        Action::PauseNode { node, on } => {
            fleet.set_paused(node, on);
            cluster.set_cut_off(node, on);
        }
        // The world sends the requests.
        Action::Burst { .. } => {}
        Action::Reload { node, version } => fleet.reload(node, version),
        Action::Adopt { node, version } => fleet.adopt(node, version),
        Action::StepNode { node, millis } => fleet.step_clock(node, millis),
        Action::StepServer { server, millis } => {
            cluster.with(server, |server| server.step_clock(millis));
        }
        Action::Name { sentinel, primary } => cluster.name(sentinel, primary),
        Action::Doubt { sentinel, shard, on } => cluster.doubt(sentinel, shard, on),
        Action::Gossip(server) => cluster.gossip(server),
        Action::ClusterDown { server, on } => cluster.set_down(server, on),
        Action::BeginMove { from, to, upper } => cluster.begin_move(from, to, upper),
        Action::MoveKeys(from) => cluster.move_keys(from),
        Action::EndMove(from) => cluster.end_move(from),
        Action::KeepSlots(server) => cluster.keep_slots(server),
        Action::Override { node, subject, effect, lasts } => {
            let subject = subject.map(|number| Phase::During.subject(number));
            fleet.begin_override(node, subject.as_deref(), effect, lasts);
        }
    }
}
