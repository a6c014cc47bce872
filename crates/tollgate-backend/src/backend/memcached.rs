//! A store that keeps the counters of limits on memcached servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate::model::{Policy, Subject, Timestamp};
use tollgate::{Clock, HashKey, SystemClock};
use tollgate_memcached::{Keys, Layout, Memcached, ServerSettings};
use tollgate_policy::{MemcachedLayout, MemcachedSettings};
use tollgate_redis::ClockOffset;
use tollgate_stores::failover_replay::ReplayCounts;
use tollgate_stores::{Atomic, CallTimer, Shard, Sharded};

use super::local_charging::LocalCharging;
use super::server_store::ServerStore;
use super::store_clock::{OffsetSource, StoreClock, Tolerance};
use crate::settings::OpenError;
use crate::shards::{Deciding, START_WAIT, skew_max};
use crate::status::{Counts, MemcachedStatus};

/// One server. The durations of the server's calls are measured.
pub(crate) type Server = Shard<CallTimer<Memcached>>;

/// The servers as one store, with all-or-nothing calls.
pub(crate) type Servers = Atomic<Sharded<CallTimer<Memcached>>>;

/// A store that keeps the counters of limits on memcached servers.
///
/// The wrappers are the same as the wrappers of [`RedisBackend`](crate::RedisBackend). The deny
/// cache keeps refusals for a few milliseconds. All other calls go to the server that owns the
/// subject. If the server does not answer within the deadline, this node's share of the limit
/// decides. [`Memcached`] describes the weaker guarantees.
#[derive(Debug)]
pub struct MemcachedBackend {
    store: ServerStore<Servers>,
    /// The smallest `skew_max` of the policy, in milliseconds.
    skew_max: Arc<AtomicU64>,
    local_charging: LocalCharging,
}

impl MemcachedBackend {
    pub(crate) fn new(store: ServerStore<Servers>, policy: &Policy) -> Self {
        let decider = Arc::clone(&store.handles().decider);
        let local_charging = LocalCharging::start(decider, Deciding::default());
        let skew_max = Arc::new(AtomicU64::new(skew_max(policy)));
        Self { store, skew_max, local_charging }
    }

    /// Creates the store on the server at `address`, and starts to connect. `deadline` is the
    /// longest time for a decision.
    pub(crate) fn open_server(
        settings: &MemcachedSettings,
        address: &str,
        key: &HashKey,
        deadline: Duration,
    ) -> Result<Memcached, OpenError> {
        let layout = match settings.layout {
            MemcachedLayout::Cell => Layout::Cell,
            MemcachedLayout::Pairs => Layout::Pairs,
        };
        let revealed = settings.revealed.iter();
        let keys = revealed.fold(Keys::new(key.clone()), |keys, limit| keys.with_revealed(limit));
        let address = address.parse().map_err(OpenError::Address)?;
        let mut server = ServerSettings { layout, ..ServerSettings::new(address) };
        server.link = server.link.raised_to(settings.deadline);
        Ok(Memcached::open(&server, keys).with_deadline(deadline))
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        self.store.handles().servers.partitions().shards().iter()
    }

    /// Returns the status of the servers, in the order of the settings.
    #[must_use]
    pub fn status(&self) -> Vec<MemcachedStatus> {
        let of = |server: &Server| MemcachedStatus {
            name: server.name.clone(),
            server: server.store.store().status(),
            took: server.store.durations(),
        };
        self.servers().map(of).collect()
    }

    /// Returns the counts of decisions without a server and of failures, since the store was
    /// opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of_servers = self.servers().map(|server| server.store.store().status().unrefunded);
        let unrefunded = of_servers.sum::<u64>() + self.store.handles().servers.unrefunded();
        self.store.counts(unrefunded, ReplayCounts::NOTHING)
    }

    /// Waits for at most [`START_WAIT`] until every server is connected.
    pub(crate) async fn started(&self) {
        let connected = async {
            for server in self.servers() {
                // All servers connect concurrently, so the total wait is not longer than the wait
                // for one server.
                if let Err(error) = server.store.store().ready(START_WAIT).await {
                    tracing::warn!("{error}; the fallback decides until the server responds");
                }
            }
        };
        // Servers that are not connected after this time connect later.
        let _ = tokio::time::timeout(START_WAIT, connected).await;
    }

    /// Returns the clock for decisions. If `clock` and the clock of the first server agree, the
    /// returned clock shows the time of `clock`. If they differ too much, the returned clock shows
    /// the server's time.
    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        self.servers().for_each(|server| server.store.store().check_clock());
        let tolerance = Tolerance::half_of(Arc::clone(&self.skew_max));
        let servers = Arc::clone(&self.store.handles().servers);
        let clock: Arc<dyn Clock> = Arc::new(StoreClock::new(clock, servers, tolerance));
        self.local_charging.set_clock(Arc::clone(&clock));
        clock
    }

    /// Sets the permitted difference of clocks to the smallest `skew_max` of the limits of
    /// `policy`.
    pub(crate) fn follow(&self, policy: &Policy) {
        self.skew_max.store(skew_max(policy), Ordering::Relaxed);
    }

    /// Compares the clocks as [`RedisBackend`](crate::RedisBackend) does.
    ///
    /// # Errors
    /// The server and the difference of its clock, with advice to the operator.
    pub(crate) fn check_clock(&self) -> Result<(), String> {
        let (now, allowed) = (SystemClock.now(), self.skew_max.load(Ordering::Relaxed));
        for server in self.servers() {
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

    /// Refunds the unused units of this node's quota leases. Called before the process ends.
    pub(crate) async fn refund_leases(&self, now: Timestamp) {
        self.store.refund_leases(now).await;
    }

    pub(crate) const fn store(&self) -> &ServerStore<Servers> {
        &self.store
    }

    /// Returns the server that owns `subject`.
    pub(crate) fn server_of(&self, subject: &Subject) -> &Memcached {
        self.store.handles().servers.partitions().shard_for(subject).store.store()
    }
}

impl OffsetSource for Servers {
    fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        let mut servers = self.partitions().shards().iter();
        let offset = servers.find_map(|server| server.store.store().clock_offset(now));
        offset.map(|(millis, uncertainty)| ClockOffset { millis, uncertainty })
    }
}
