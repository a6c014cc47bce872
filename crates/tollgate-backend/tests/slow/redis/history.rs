//! Callers of two nodes over two shards. The answers are checked as one history.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::task::JoinSet;
use tollgate::model::algo::{Anchor, FixedWindow, TokenBucket};
use tollgate::model::key::Subject;
use tollgate::model::{
    Algorithm, Charge, ChargeId, Cost, DecisionSource, Limit, LimitMode, Millis, Operation, Store,
    StoreError,
};
use tollgate::{Clock, SystemClock};
use tollgate_backend::{Backend, Counts};
use tollgate_conformance::history::{
    Allowance, History, LARGEST_COST, Outcome, Recorded, Recorder, Refunds, Report, Subjects,
    Workload,
};
use tollgate_conformance::{Figure, assert_held};
use tollgate_stores::atomic::max_held_units;
use tollgate_stores::quota_lease::{LeaseConfig, max_early_refusal};

use crate::kit::{Server, Version};
use crate::redis::fleet::{PATIENT, loaded, open, shards};
use crate::redis::pairs::{PATIENCE, PAUSE, Pair, pairs, served, until, words};

const NODES: u64 = 2;
const CALLERS: u64 = 8;
/// The quota of fixed windows that last longer than any test.
const QUOTA: u64 = 1_000;
const HOUR: Millis = Millis::from_secs(3_600);
const FIVE_YEARS: Millis = Millis::from_secs(5 * 365 * 24 * 3_600);

/// Two nodes over the same shards. One recorder records the calls of both nodes.
struct Nodes {
    stores: Vec<Arc<Recorded<Backend>>>,
    recorder: Arc<Recorder>,
}

impl Nodes {
    /// Starts nodes over the shards of these settings, and waits until the nodes are connected.
    ///
    /// Only primaries answer. A replica would answer charges of 0 units from state that may lack
    /// the latest charges, but the checker treats every answer as an answer of the primary.
    async fn over(shards: &str) -> Self {
        let loaded = loaded(&format!("{shards}, {PATIENT}, nodes: {NODES}, reads: primaries"));
        let recorder = Arc::<Recorder>::default();
        let mut stores = Vec::new();
        for _ in 0..NODES {
            let store = Recorded::with_recorder(open(&loaded), Arc::clone(&recorder));
            served(store.store()).await;
            stores.push(Arc::new(store));
        }
        Self { stores, recorder }
    }

    /// Starts all callers of the workload. The callers have new identities in each round.
    fn begin(&self, workload: &Arc<Workload>, round: u64) -> JoinSet<()> {
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let store = Arc::clone(&self.stores[(caller % NODES) as usize]);
            let workload = Arc::clone(workload);
            callers.spawn(async move { workload.call(&*store, round * CALLERS + caller).await });
        }
        callers
    }

    fn counts(&self) -> impl Iterator<Item = Counts> {
        self.stores.iter().map(|store| match store.store() {
            Backend::Redis(fleet) => fleet.counts(),
            _ => Counts::default(),
        })
    }

    /// Checks the history of all calls. Tolerates the units that calls over two shards hold until
    /// they are refunded, and `more`.
    fn judge(&self, more: Allowance) -> Report {
        let report = self.recorder.history().check(self.allowing(more));
        println!("{report}");
        report.assert_sound();
        assert!(report.admitted > 0, "{report}");
        report
    }

    /// Returns the smallest number of lost units with which the history is sound, up to the number
    /// in `most`. All other tolerances are taken from `most`.
    fn lost_at_least(&self, most: Allowance) -> u64 {
        let history = self.recorder.history();
        let is_sound = |lost| history.check(self.allowing(Allowance { lost, ..most })).is_sound();
        let (mut least, mut enough) = (0, most.lost);
        while least < enough {
            let middle = least.midpoint(enough);
            if is_sound(middle) { enough = middle } else { least = middle + 1 }
        }
        enough
    }

    /// Returns an allowance for the units that calls over two shards hold until they are refunded,
    /// plus `more`.
    fn allowing(&self, more: Allowance) -> Allowance {
        let largest = Cost::new(LARGEST_COST).unwrap();
        let unrefunded = self.counts().map(|counts| counts.unrefunded).sum::<u64>() * largest.get();
        Allowance { held: max_held_units(CALLERS, largest), unrefunded, ..more }
    }
}

/// Creates a workload of calls on a few subjects. Most of the calls charge several subjects. The
/// callers use clocks of their own, so keys are kept long enough for the test on a busy machine.
fn workload(limits: Vec<Limit>, refunds: Refunds) -> Workload {
    let limits = limits.into_iter().map(|limit| limit.with_skew_max(HOUR)).collect();
    let mut workload = Workload::new(7, limits, refunds);
    workload.of_a_call = Subjects::Several;
    workload.subjects = 6;
    workload
}

/// Returns limits with windows that outlive every test. No test uses up a limit twice.
fn long_limits(calendar: Millis) -> Vec<Limit> {
    let window =
        |length, anchor| FixedWindow::new(QUOTA, length, anchor).map(Algorithm::FixedWindow);
    let bucket = TokenBucket::new(QUOTA, HOUR, QUOTA).map(Algorithm::TokenBucket);
    [
        ("first", window(HOUR, Anchor::FirstRequest)),
        ("calendar", window(calendar, Anchor::Calendar)),
        ("bucket", bucket),
    ]
    .map(|(name, algorithm)| Limit::new(name, algorithm.unwrap()).unwrap())
    .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_two_shards_are_sound() {
    for refunds in [Refunds::Never, Refunds::Often] {
        let servers = [Server::start().await, Server::start().await];
        let nodes = Nodes::over(&shards(&servers.each_ref())).await;
        let workload = Arc::new(workload(Workload::limits_of_each_kind(), refunds));
        nodes.begin(&workload, 0).join_all().await;
        let report = nodes.judge(Allowance::default());
        assert_eq!((report.unknown, report.fallback), (0, 0), "{report}");
        assert!(report.refused > 0, "{report}");
        for server in &servers {
            server.assert_every_key_ends().await;
        }
    }
}

/// If one shard of a call does not answer, the call's charge on the other shard is refunded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_dies_under_calls_over_two_leaves_all_or_nothing() {
    let (stays, mut dies) = (Server::start().await, Server::start().await);
    let nodes = Nodes::over(&shards(&[&stays, &dies])).await;
    // A task of each node charges the store for the units that the node's fallback admitted, and
    // drops those whose window has ended by the node's clock. The callers therefore start at the
    // present time, and no window ends soon.
    let workload = workload(long_limits(FIVE_YEARS), Refunds::Never).starting_at(SystemClock.now());
    let workload = Arc::new(workload);
    let callers = nodes.begin(&workload, 0);
    let half = (CALLERS * workload.calls / 2) as usize;
    until(|| nodes.recorder.calls() >= half).await;
    dies.kill();
    callers.join_all().await;
    // From this point on, the shard is down for all callers.
    nodes.begin(&workload, 1).join_all().await;
    let report = nodes.judge(Allowance { fallback: QUOTA, ..Allowance::default() });
    assert!(report.fallback > 0, "{report}");
    assert!(nodes.counts().all(|counts| counts.unrefunded == 0));

    let mut on_what_stays = 0;
    let history = nodes.recorder.history();
    let now = history.calls.iter().map(|call| call.now).max().unwrap();
    for ((limit, subject), admitted) in admitted(&history) {
        let limit = workload.limits.iter().find(|known| known.name() == limit).unwrap();
        let operation = Operation::Charge { cost: Cost::PEEK, id: ChargeId(0) };
        let charge = Charge { limit, subject: &subject, operation };
        // The store is charged for units that the nodes' fallbacks admitted, as far as the limit
        // has units left.
        let expected = admitted.min(QUOTA);
        // Before this call, each node charges the store for these units, or a task of the node is
        // already charging them. The second case needs some time.
        let reads = async {
            loop {
                let mut readings = nodes.stores[1].store().apply(now, &[charge]).await.unwrap();
                if readings.source() == DecisionSource::Store {
                    readings = nodes.stores[0].store().apply(now, &[charge]).await.unwrap();
                }
                if readings.source() != DecisionSource::Store || readings[0].used >= expected {
                    return readings;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let what = || format!("{} of {subject}", limit.name());
        let readings = tokio::time::timeout(PATIENCE, reads)
            .await
            .unwrap_or_else(|_| panic!("the store never has {expected} units of {}", what()));
        if readings.source() == DecisionSource::Store {
            assert_eq!(readings[0].used, expected, "{}", what());
            on_what_stays += 1;
        }
    }
    assert!(on_what_stays > 0, "every subject lived on the shard that died");
}

/// Returns the units of fixed windows that the store or a node's fallback admitted. The fallback
/// admits units while a shard is unavailable or full, and the store is charged for these units when
/// it answers again.
fn admitted(history: &History) -> BTreeMap<(String, Subject), u64> {
    let mut units = BTreeMap::new();
    for call in &history.calls {
        let Outcome::Answered(readings) = &call.outcome else { continue };
        let was_charged = [
            DecisionSource::Store,
            DecisionSource::Fallback(StoreError::Unavailable),
            DecisionSource::Fallback(StoreError::Full),
        ];
        if !was_charged.contains(&readings.source()) || !readings.all_admitted() {
            continue;
        }
        for charge in &call.charges {
            let fixed = matches!(charge.limit.algorithm(), Algorithm::FixedWindow(_));
            if let Operation::Charge { cost, .. } = charge.operation
                && fixed
            {
                let key = (charge.limit.name().to_owned(), charge.subject.clone());
                *units.entry(key).or_insert(0) += cost.get();
            }
        }
    }
    units
}

/// Kills the primary during the workload and promotes its replica. Callers run before, during and
/// after the failover. Returns the units that the replica may lack.
async fn fail_over(nodes: &Nodes, workload: &Arc<Workload>, pair: &mut Pair) -> u64 {
    let [primary, replica] = pair;
    let decided = || nodes.counts().map(|counts| counts.leases.decided).sum::<u64>();
    let leased = || nodes.counts().map(|counts| counts.leases.units_taken).sum::<u64>();
    nodes.begin(workload, 0).join_all().await;
    let callers = nodes.begin(workload, 1);
    let before = (nodes.recorder.calls() as u64 - decided(), leased());
    primary.is_followed().await;
    primary.kill();
    // Each caller may have a call that the caller has not counted yet.
    let calls = nodes.recorder.calls() as u64 - decided() + 2 * CALLERS - before.0;
    callers.join_all().await;
    let unheard = calls * LARGEST_COST + leased() - before.1;
    nodes.begin(workload, 2).join_all().await;
    assert!(nodes.counts().all(|counts| counts.fallback_decisions > 0), "a node did not notice");

    replica.promote().await;
    let found = Some(replica.url());
    until(|| {
        let primary =
            |store: &Arc<Recorded<Backend>>| store.store().status()[0].primary().map(str::to_owned);
        nodes.stores.iter().all(|store| primary(store) == found)
    })
    .await;
    nodes.begin(workload, 3).join_all().await;
    unheard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_dies_and_its_replica_in_its_place_keep_the_stated_bound() {
    let mut pairs = pairs(Version::default(), 2).await;
    let nodes = Nodes::over(&words(&pairs)).await;
    let workload = Arc::new(workload(long_limits(HOUR), Refunds::Never));
    let lost = fail_over(&nodes, &workload, &mut pairs[0]).await;

    // The allowance contains the units that the replica lacked, and the units that the nodes'
    // fallbacks may admit.
    let allowance = Allowance { lost, fallback: QUOTA, ..Allowance::default() };
    let report = nodes.judge(allowance);
    assert!(report.refused > 0, "{report}");
    assert_held(&[
        Figure::fault_seen("decisions by nodes alone", report.fallback),
        Figure::at_most("units lost, at least", nodes.lost_at_least(allowance), lost),
    ]);
    pairs[0][1].assert_every_key_ends().await;
    pairs[1][0].assert_every_key_ends().await;
}

/// Nodes continue with their quota leases, although the replica may lack the charges for these
/// leases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_keep_the_stated_bound_where_a_replica_takes_over() {
    let mut pairs = pairs(Version::default(), 1).await;
    let nodes = Nodes::over(&words(&pairs)).await;
    let mut limits = long_limits(HOUR);
    limits.retain(|limit| matches!(limit.algorithm(), Algorithm::FixedWindow(_)));
    let leased = |limit: Limit| limit.with_mode(LimitMode::Leased).unwrap();
    let mut workload = workload(limits.into_iter().map(leased).collect(), Refunds::Never);
    workload.of_a_call = Subjects::One;
    let workload = Arc::new(workload);
    let lost = fail_over(&nodes, &workload, &mut pairs[0]).await;

    // The allowance contains, for each node, its unused units, and the units of a lease without an
    // answer when the primary died.
    let nodes_of_leases = 2 * NODES;
    let terms = LeaseConfig::for_nodes(NonZeroU32::new(NODES as u32).unwrap());
    let each = workload.limits.iter().map(|limit| terms.max_unused_units(limit)).max().unwrap();
    let leased = max_early_refusal(nodes_of_leases, each);
    let allowance = Allowance { lost, leased, fallback: QUOTA, ..Allowance::default() };
    let report = nodes.judge(allowance);
    assert!(report.refused > 0, "{report}");
    assert_held(&[
        Figure::fault_seen("decisions by leases", nodes.counts().map(|it| it.leases.decided).sum()),
        Figure::fault_seen("decisions by nodes alone", report.fallback),
        Figure::at_most("units lost, at least", nodes.lost_at_least(allowance), lost),
    ]);
    pairs[0][1].assert_every_key_ends().await;
}
