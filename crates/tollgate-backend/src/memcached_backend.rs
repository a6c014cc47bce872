//! memcached servers as one store, with the wrappers that handle outages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;
use tollgate::model::{
    Charge, DecisionSource, Policy, Reading, Readings, Store, StoreError, StoredState, Subject,
    Timestamp,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate::{Clock, HashKey, SystemClock};
use tollgate_memcached::{Keys, Layout, Memcached, ServerSettings};
use tollgate_policy::{MemcachedLayout, MemcachedSettings};
use tollgate_redis::ClockOffset;
use tollgate_stores::deadline::TIMER_GRAIN;
use tollgate_stores::failover_replay::ReplayCounts;
use tollgate_stores::quota_lease::{LeaseConfig, Sweeper};
use tollgate_stores::{
    Atomic, CallTimer, Deadline, DenyCache, Fallback, LocalShare, QuotaLease, QuotaRescale, Shard,
    Sharded,
};

use crate::error::OpenError;
use crate::status::{Counts, MemcachedStatus};
use crate::store_clock::{OffsetSource, StoreClock, Tolerance};
use crate::watch::{START_WAIT, skew_max};

/// The servers, with all-or-nothing calls.
pub(crate) type Servers = Atomic<Sharded<CallTimer<Memcached>>>;

/// The wrappers around the servers.
pub(crate) type Layers =
    QuotaRescale<DenyCache<Fallback<Deadline<QuotaLease<Arc<Servers>>>, LocalShare<Memory>>>>;

/// Limits on memcached servers.
///
/// The wrappers are those of [`RedisBackend`](crate::RedisBackend): refusals are remembered for a
/// few milliseconds. All other calls go to the server that owns the subject. If it does not answer
/// within the deadline, this node's share decides. [`Memcached`] describes the weaker guarantees.
#[derive(Debug)]
pub struct MemcachedBackend {
    store: Layers,
    /// Refunds unused units of quota leases.
    _sweeper: Sweeper,
    discarded: AtomicU64,
    /// The smallest `skew_max` of the policy, in milliseconds.
    skew_max: Arc<AtomicU64>,
}

impl MemcachedBackend {
    /// Opens the servers of `settings` and starts to connect.
    pub(crate) fn open(
        settings: &MemcachedSettings,
        key: HashKey,
        fallback_store: Bounds,
        policy: &Policy,
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
        let decider = Fallback::new(exact, share).with_budget(settings.deadline);
        let store = QuotaRescale::new(DenyCache::new(decider));
        let skew_max = Arc::new(AtomicU64::new(skew_max(policy)));
        Ok(Self { store, _sweeper: sweeper, discarded: AtomicU64::new(0), skew_max })
    }

    /// Returns the status of the servers, in the order of the settings.
    #[must_use]
    pub fn status(&self) -> Vec<MemcachedStatus> {
        let of = |server: &Shard<CallTimer<Memcached>>| MemcachedStatus {
            name: server.name.clone(),
            server: server.store.store().status(),
            took: server.store.durations(),
        };
        self.servers().partitions().shards().iter().map(of).collect()
    }

    /// Returns the counts of decisions without a server and of failures, since the store was
    /// opened.
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
            local_charges: fallback.local_charges(),
            unanswered: stood_in.unanswered,
            missed: fallback.store().missed(),
            unrefunded: of_servers.map(|it| it.unrefunded).sum::<u64>() + servers.unrefunded(),
            discarded: self.discarded.load(Ordering::Relaxed),
            repaired: ReplayCounts::NOTHING,
            leases: self.quota_lease().counts(),
        }
    }

    /// Waits until every server is connected, for at most [`START_WAIT`].
    pub(crate) async fn started(&self) {
        let servers = self.servers().partitions().shards();
        let connected = async {
            for server in servers {
                // All servers connect concurrently, so the total wait is at most the wait for one.
                if let Err(error) = server.store.store().ready(START_WAIT).await {
                    tracing::warn!("{error}; the fallback decides until the server responds");
                }
            }
        };
        // Servers that are not connected yet connect later.
        let _ = tokio::time::timeout(START_WAIT, connected).await;
    }

    /// Returns `clock` while it agrees with the clock of the first server, otherwise the server's
    /// clock.
    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        let servers = self.servers().partitions().shards();
        servers.iter().for_each(|server| server.store.store().check_clock());
        let tolerance = Tolerance::half_of(Arc::clone(&self.skew_max));
        Arc::new(StoreClock::new(clock, Arc::clone(self.servers()) as _, tolerance))
    }

    /// Applies `policy`.
    pub(crate) fn follow(&self, policy: &Policy) {
        self.skew_max.store(skew_max(policy), Ordering::Relaxed);
    }

    /// Compares the clocks as [`RedisBackend`](crate::RedisBackend) does.
    ///
    /// # Errors
    /// Which server's clock differs, by how much, and what to do.
    pub(crate) fn check_clock(&self) -> Result<(), String> {
        let (now, allowed) = (SystemClock.now(), self.skew_max.load(Ordering::Relaxed));
        for server in self.servers().partitions().shards() {
            let Some((offset, uncertainty)) = server.store.store().clock_offset(now) else {
                continue;
            };
            let surely = offset.unsigned_abs().saturating_sub(uncertainty);
            if surely > allowed {
                return Err(format!(
                    "the clocks of this node and of {} are {surely} ms apart, and skew_max is \
                     {allowed} ms: synchronize them; until then the server's clock decides",
                    server.name
                ));
            }
        }
        Ok(())
    }

    pub(crate) const fn layers(&self) -> &Layers {
        &self.store
    }

    /// Refunds the unused units of this node's quota leases. Called before the process ends.
    pub(crate) async fn refund_leases(&self, now: Timestamp) {
        self.quota_lease().refund_all(now).await;
    }

    fn quota_lease(&self) -> &QuotaLease<Arc<Servers>> {
        self.store.store().store().store().store()
    }

    pub(crate) fn servers(&self) -> &Arc<Servers> {
        self.quota_lease().store()
    }

    /// Returns the server that owns `subject`.
    pub(crate) fn shard_for(&self, subject: &Subject) -> &Memcached {
        self.servers().partitions().shard_for(subject).store.store()
    }
}

impl OffsetSource for Servers {
    fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        let mut servers = self.partitions().shards().iter();
        let told = servers.find_map(|server| server.store.store().clock_offset(now));
        told.map(|(millis, uncertainty)| ClockOffset { millis, uncertainty })
    }
}

impl Store for MemcachedBackend {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let readings = self.store.apply(now, charges).await?;
        let found = |reading: &Reading| reading.found == StoredState::Discarded;
        // A remembered refusal was counted when it was received.
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
    // The server's deadline is shorter, so the circuit breaker sees each missed deadline before the
    // whole decision times out.
    let left = TIMER_GRAIN.max(settings.deadline / 16);
    let within = settings.deadline.saturating_sub(left).max(settings.deadline / 2);
    let mut server_settings = ServerSettings { layout, ..ServerSettings::new(address) };
    server_settings.link = server_settings.link.raised_to(settings.deadline);
    let store = Memcached::open(&server_settings, keys).with_deadline(within);
    Ok(Shard { name: server.into(), weight: 1, store: CallTimer::new(store) })
}
