//! A store on a cluster, and limits to charge.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::reading::Admission;
use tollgate_core::{
    Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Reading, Subject, Value,
};
use tollgate_redis::{
    BatcherError, ClusterSettings, Endpoint, Keys, LinkLimits, ReadFrom, RedisCluster,
    RuntimeChoice, Tag,
};

use crate::cluster::{NOW, PATIENCE, until};
use crate::kit::Cluster;

/// A quota with more units than any test charges to one subject.
const QUOTA: u64 = 1_000_000;

/// A store, and two limits for each user of each tenant. The users of a tenant share a slot.
pub(crate) struct Client {
    pub(crate) store: RedisCluster,
    limits: [Limit; 2],
    answered: AtomicU64,
}

/// A user, and the number of limits that each charge of the user is charged on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) tenant: u64,
    pub(crate) user: u64,
    pub(crate) limits: usize,
}

/// Returns settings with long timeouts, so a machine that is busy with other tests does not look
/// like a fault.
pub(crate) fn patient(urls: &[String]) -> ClusterSettings {
    let mut settings =
        ClusterSettings::new(urls.iter().map(|url| url.parse::<Endpoint>().unwrap()));
    settings.tag = Tag::Dimension("tenant".into());
    settings.reads = ReadFrom::Primary;
    settings.batcher.disconnect_grace = PATIENCE;
    settings.link = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        seek: PATIENCE,
        // Two failovers in quick succession must not stop calls.
        proven_after: Duration::ZERO,
        ..LinkLimits::default()
    };
    settings
}

impl Client {
    /// Opens a store that knows one node of `cluster`, and waits until it has discovered the other
    /// nodes.
    pub(crate) async fn connect(cluster: &Cluster) -> Arc<Self> {
        let client = Self::open(patient(&cluster.urls()[..1]));
        client.store.ready(PATIENCE).await.unwrap();
        client
    }

    pub(crate) fn open(settings: ClusterSettings) -> Arc<Self> {
        let store = RedisCluster::open(settings, Keys::new(PlainHash), RuntimeChoice::Best);
        let limit = |name| {
            let window = FixedWindow::new(QUOTA, Millis::new(3_600_000), Anchor::FirstRequest);
            Limit::new(name, Algorithm::FixedWindow(window.unwrap())).unwrap()
        };
        let limits = [limit("core"), limit("points")];
        Arc::new(Self { store, limits, answered: AtomicU64::new(0) })
    }

    /// Returns the slot of a tenant.
    pub(crate) fn slot(&self, tenant: u64) -> u16 {
        self.store.partition(&subject(tenant, 0)).try_into().unwrap()
    }

    /// Charges one unit.
    pub(crate) async fn take(&self, target: Target) -> Result<Vec<Reading>, BatcherError> {
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
        self.apply(target, operation).await
    }

    /// Returns the used units of the first limit.
    pub(crate) async fn used(&self, target: Target) -> u64 {
        let looked = self.apply(target, Operation::Peek { cost: Cost::ONE }).await.unwrap();
        looked.first().unwrap().used
    }

    async fn apply(
        &self,
        target: Target,
        operation: Operation,
    ) -> Result<Vec<Reading>, BatcherError> {
        let subject = subject(target.tenant, target.user);
        let charge = |limit| Charge { limit, subject: &subject, operation };
        let charges: Vec<_> = self.limits.iter().take(target.limits).map(charge).collect();
        let result = self.store.apply_within(NOW, &charges, PATIENCE).await;
        self.answered.fetch_add(1, Ordering::SeqCst);
        Ok(result?.to_vec())
    }

    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::SeqCst)
    }

    /// Waits until this many more calls are answered.
    pub(crate) async fn answers(&self, more: u64) {
        let wanted = self.answered() + more;
        until(|| self.answered() >= wanted).await;
    }
}

/// Runs many callers until `disturb` has ended. Each caller charges one unit of one target after
/// the other. Asserts that each caller received a count that no other caller received, and that no
/// count is missing.
pub(crate) async fn counts_are_exact_during<T>(
    client: &Arc<Client>,
    targets: &[Target],
    disturb: impl Future<Output = T>,
) -> T {
    const CALLERS: usize = 16;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (client, stopped, targets) = (Arc::clone(client), stopped.clone(), targets.to_vec());
        callers.spawn(async move {
            let mut result = Vec::new();
            for turn in caller.. {
                if *stopped.borrow() {
                    break;
                }
                let target = targets[turn % targets.len()];
                result.push((target, client.take(target).await));
            }
            result
        });
    }
    client.answers(CALLERS as u64).await;
    let result = disturb.await;
    client.answers(CALLERS as u64).await;
    stop.send_replace(true);
    let mut counts = BTreeMap::<Target, Vec<u64>>::new();
    for (target, result) in callers.join_all().await.concat() {
        let readings = result.unwrap_or_else(|error| panic!("{target:?}: {error}"));
        let used = readings.first().unwrap().used;
        assert!(
            readings
                .iter()
                .all(|reading| reading.used == used && reading.admission == Admission::Now)
        );
        counts.entry(target).or_default().push(used);
    }
    for (target, mut counts) in counts {
        counts.sort_unstable();
        let once: Vec<_> = (1..=counts.len() as u64).collect();
        assert_eq!(counts, once, "{target:?}");
    }
    result
}

fn subject(tenant: u64, user: u64) -> Subject {
    let [tenant, user] = [tenant, user].map(u64::to_be_bytes);
    let pairs = [("tenant", Value::Clear(&tenant[..])), ("user", Value::Clear(&user))];
    Subject::new(pairs, &PlainHash)
}
