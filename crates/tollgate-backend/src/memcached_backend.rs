//! Servers of memcached as one store, with all that an outage asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;
use tollgate::HashKey;
use tollgate::core::{
    Charge, DecisionSource, Reading, Readings, Store, StoreError, StoredState, Subject, Timestamp,
};
use tollgate::store::deadline::TIMER_GRAIN;
use tollgate::store::failover_replay::ReplayCounts;
use tollgate::store::memory::Bounds;
use tollgate::store::quota_lease::{LeaseConfig, Sweeper};
use tollgate::store::{
    Atomic, CallTimer, Deadline, DenyCache, Fallback, LocalShare, Memory, QuotaLease, QuotaRescale,
    Shard, Sharded,
};
use tollgate_memcached::{Keys, Layout, LinkLimits, Memcached, ServerSettings};
use tollgate_policy::{MemcachedLayout, MemcachedSettings};

use crate::error::OpenError;
use crate::status::{Counts, MemcachedStatus};
use crate::watch::START_WAIT;

/// Servers, together all or nothing.
pub(crate) type Servers = Atomic<Sharded<CallTimer<Memcached>>>;

/// What is around the servers.
pub(crate) type Layers =
    QuotaRescale<DenyCache<Fallback<Deadline<QuotaLease<Arc<Servers>>>, LocalShare<Memory>>>>;

/// Limits in servers of memcached.
///
/// As [`RedisBackend`](crate::RedisBackend) is over shards of Redis: refusals are remembered for a few
/// milliseconds; all else is asked of the server that is the subject's partition; what has no answer
/// within the deadline is decided by this node's share. What is weaker [`Memcached`] says.
#[derive(Debug)]
pub struct MemcachedBackend {
    store: Layers,
    /// Gives back what this node took in advance and does not use.
    _sweeper: Sweeper,
    discarded: AtomicU64,
}

impl MemcachedBackend {
    /// Opens the servers of `settings`, and begins to connect.
    pub(crate) fn open(
        settings: &MemcachedSettings,
        key: HashKey,
        fallback_store: Bounds,
    ) -> Result<Self, OpenError> {
        if Handle::try_current().is_err() {
            return Err(OpenError::NoRuntime);
        }
        let opened = settings.servers.iter().map(|server| open_server(settings, server, &key));
        let opened = opened.collect::<Result<Vec<_>, _>>()?;
        let sharded = Sharded::new(key, opened).map_err(OpenError::Shards)?;
        let terms = LeaseConfig::for_nodes(settings.nodes);
        let leased = QuotaLease::new(Arc::new(Atomic::new(sharded)), terms);
        let sweeper = leased.start_sweeping();
        let exact = Deadline::new(leased).with_budget(settings.deadline);
        let share = LocalShare::new(Memory::new(fallback_store), settings.nodes);
        let store = QuotaRescale::new(DenyCache::new(Fallback::new(exact, share)));
        Ok(Self { store, _sweeper: sweeper, discarded: AtomicU64::new(0) })
    }

    /// How the servers stand, in the order of the settings.
    #[must_use]
    pub fn status(&self) -> Vec<MemcachedStatus> {
        let of = |server: &Shard<CallTimer<Memcached>>| MemcachedStatus {
            name: server.name.clone(),
            server: server.store.store().status(),
            took: server.store.durations(),
        };
        self.servers().partitions().shards().iter().map(of).collect()
    }

    /// What was decided without a server, and what went wrong, since the fleet was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let refused = self.store.store();
        let fallback = refused.store();
        let stood_in = fallback.counts();
        let servers = self.servers();
        let shards = servers.partitions().shards().iter();
        let of_servers = shards.map(|server| server.store.store().status());
        Counts {
            remembered: refused.hits(),
            stood_in: stood_in.stood_in,
            unanswered: stood_in.unanswered,
            missed: fallback.store().missed(),
            unrefunded: of_servers.map(|it| it.unrefunded).sum::<u64>() + servers.unrefunded(),
            discarded: self.discarded.load(Ordering::Relaxed),
            repaired: ReplayCounts::NOTHING,
            leases: self.quota_lease().counts(),
        }
    }

    /// Waits until every server is connected, or [`START_WAIT`] is over.
    pub(crate) async fn started(&self) {
        let servers = self.servers().partitions().shards();
        let connected = async {
            for server in servers {
                // All connect at the same time, so waiting for one is waiting for each.
                if let Err(error) = server.store.store().ready(START_WAIT).await {
                    tracing::warn!("{error}; its clients are decided here until it is found");
                }
            }
        };
        // What is late is found later.
        let _ = tokio::time::timeout(START_WAIT, connected).await;
    }

    pub(crate) const fn layers(&self) -> &Layers {
        &self.store
    }

    /// Gives back what this node took in advance and did not use: before the process ends.
    pub(crate) async fn refund_leases(&self, now: Timestamp) {
        self.quota_lease().refund_all(now).await;
    }

    fn quota_lease(&self) -> &QuotaLease<Arc<Servers>> {
        self.store.store().store().store().store()
    }

    pub(crate) fn servers(&self) -> &Arc<Servers> {
        self.quota_lease().store()
    }

    /// The server on which `subject` lives.
    pub(crate) fn shard_for(&self, subject: &Subject) -> &Memcached {
        self.servers().partitions().shard_for(subject).store.store()
    }
}

impl Store for MemcachedBackend {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let readings = self.store.apply(now, charges).await?;
        let found = |reading: &Reading| reading.found == StoredState::Discarded;
        // What is remembered was counted when it was heard.
        if readings.source() == DecisionSource::Store && readings.iter().any(found) {
            self.discarded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(readings)
    }
}

fn open_server(
    settings: &MemcachedSettings,
    server: &str,
    key: &HashKey,
) -> Result<Shard<CallTimer<Memcached>>, OpenError> {
    let address = server.parse().map_err(OpenError::Address)?;
    let layout = match settings.layout {
        MemcachedLayout::Cell => Layout::Cell,
        MemcachedLayout::Pairs => Layout::Pairs,
    };
    let keys = settings
        .revealed
        .iter()
        .fold(Keys::new(key.clone()), |keys, limit| keys.with_revealed(limit));
    // The server hears of each decision that it missed before the decision is given up.
    let left = TIMER_GRAIN.max(settings.deadline / 16);
    let within = settings.deadline.saturating_sub(left).max(settings.deadline / 2);
    let link = LinkLimits::for_deadline(settings.deadline);
    let server_settings = ServerSettings { layout, link, ..ServerSettings::new(address) };
    let store = Memcached::open(&server_settings, keys).with_deadline(within);
    Ok(Shard { name: server.into(), weight: 1, store: CallTimer::new(store) })
}
