//! The client connections of a proxy: the limits in total and for each address, and which
//! connections are closed to make room for new clients.

mod address;

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use crate::{CloseReason, ConnectionMetrics, Settings, TrustedProxies, conversation::Conversation};
use address::AddressKey;

/// The shortest time for which a connection must have been idle, or its request head incomplete,
/// before it is closed to make room.
pub(crate) const EVICTABLE_AFTER: Duration = Duration::from_secs(1);

/// The divisor for connections closed at once when the proxy is full (one of 128, at least one).
/// Finding the longest idle connections reads all of them, so closing them one by one would take
/// quadratic time.
const EVICTED_SHARE: usize = 128;

/// How often a full proxy looks for idle connections.
const EVICT_EVERY: Duration = Duration::from_millis(250);

/// The proxy is nearly full when more than this percentage of its connections is in use.
const NEARLY_FULL_PERCENT: u64 = 80;

/// All client connections. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Connections(Arc<Registry>);

#[derive(Debug)]
struct Registry {
    limit: u32,
    /// The most connections of one address. 0 means no limit.
    limit_per_address: u32,
    trusted_proxies: TrustedProxies,
    permits: Arc<Semaphore>,
    metrics: ConnectionMetrics,
    open: Mutex<Open>,
}

/// The open connections. The permits limit the size of both maps.
#[derive(Debug, Default)]
struct Open {
    last_number: u64,
    by_number: HashMap<u64, Arc<Conversation>>,
    per_address: HashMap<AddressKey, u32>,
}

/// One connection counted against the limit of its address. Dropping it subtracts it again.
#[derive(Debug)]
pub(crate) struct AddressSlot {
    registry: Arc<Registry>,
    /// `None` if the address has no limit.
    counted: Option<AddressKey>,
    peer: IpAddr,
}

/// An open client connection. Dropping it counts the connection as closed and releases its permit.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    number: u64,
    conversation: Arc<Conversation>,
    address: AddressSlot,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(settings: &Settings) -> Self {
        let limit = settings.limits.connections;
        Self(Arc::new(Registry {
            limit,
            limit_per_address: settings.limits.connections_per_address,
            trusted_proxies: settings.trusted_proxies.clone(),
            permits: Arc::new(Semaphore::new(limit as usize)),
            metrics: settings.connection_metrics.clone(),
            open: Mutex::default(),
        }))
    }

    /// Counts a new connection of `peer`. Returns `None` if its address has reached its limit.
    pub(crate) fn admit(&self, peer: IpAddr) -> Option<AddressSlot> {
        let registry = Arc::clone(&self.0);
        let address = peer.to_canonical();
        let has_limit = registry.limit_per_address > 0
            && !registry.trusted_proxies.load().iter().any(|network| network.contains(address));
        if !has_limit {
            return Some(AddressSlot { registry, counted: None, peer });
        }
        let key = AddressKey::of(address);
        let mut open = registry.open.lock();
        let connections = open.per_address.entry(key).or_default();
        if *connections >= registry.limit_per_address {
            drop(open);
            registry.metrics.count(CloseReason::AddressLimit, peer);
            return None;
        }
        *connections += 1;
        drop(open);
        Some(AddressSlot { registry, counted: Some(key), peer })
    }

    /// Waits for a permit. While there is none, it closes the connections that have been idle for
    /// the longest time.
    pub(crate) async fn permit(&self) -> OwnedSemaphorePermit {
        loop {
            if let Some(permit) = self.try_permit() {
                return permit;
            }
            self.0.metrics.warn_full(self.0.limit);
            self.0.evict(Instant::now());
            let permit = Arc::clone(&self.0.permits).acquire_owned();
            // The semaphore is never closed, so there is no inner error.
            if let Ok(Ok(permit)) = timeout(EVICT_EVERY, permit).await {
                return permit;
            }
        }
    }

    pub(crate) fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.permits).try_acquire_owned().ok()
    }

    /// Registers an open connection.
    pub(crate) fn open(
        &self,
        permit: OwnedSemaphorePermit,
        address: AddressSlot,
        conversation: Arc<Conversation>,
    ) -> ConnectionSlot {
        let mut open = self.0.open.lock();
        open.last_number += 1;
        let number = open.last_number;
        open.by_number.insert(number, Arc::clone(&conversation));
        drop(open);
        self.0.metrics.count_open();
        ConnectionSlot { number, conversation, address, _permit: permit }
    }

    /// Waits until no connection is open.
    pub(crate) async fn all_closed(&self) {
        // The semaphore is never closed, so there is no error.
        let _ = self.0.permits.acquire_many(self.0.limit).await;
    }

    /// Returns the number of connections in use.
    pub(crate) fn in_use(&self) -> u32 {
        self.0.in_use()
    }
}

impl Registry {
    fn in_use(&self) -> u32 {
        let free = u32::try_from(self.permits.available_permits()).unwrap_or(self.limit);
        self.limit.saturating_sub(free)
    }

    /// Asks the connections that have been idle for the longest time to close: one of
    /// [`EVICTED_SHARE`], at least one.
    fn evict(&self, now: Instant) {
        let Some(latest) = now.checked_sub(EVICTABLE_AFTER) else { return };
        let open = self.open.lock();
        let mut idle: Vec<_> = open
            .by_number
            .values()
            .filter_map(|conversation| {
                let since = conversation.evictable_since()?;
                (since <= latest).then(|| (since, Arc::clone(conversation)))
            })
            .collect();
        drop(open);
        let count = (self.limit as usize).div_ceil(EVICTED_SHARE).min(idle.len());
        if count < idle.len() {
            idle.select_nth_unstable_by_key(count, |(since, _)| *since);
        }
        for (_, conversation) in idle.drain(..count) {
            conversation.evict();
        }
    }
}

impl ConnectionSlot {
    pub(crate) fn conversation(&self) -> &Arc<Conversation> {
        &self.conversation
    }

    /// Returns whether more than [`NEARLY_FULL_PERCENT`] of the connections are in use.
    pub(crate) fn is_nearly_full(&self) -> bool {
        let registry = &self.address.registry;
        u64::from(registry.in_use()) * 100 > u64::from(registry.limit) * NEARLY_FULL_PERCENT
    }

    /// Counts an event of this connection that does not close it.
    pub(crate) fn count(&self, reason: CloseReason) {
        self.address.registry.metrics.count(reason, self.address.peer);
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let registry = &self.address.registry;
        registry.open.lock().by_number.remove(&self.number);
        registry.metrics.count_closed(self.conversation.close_reason(), self.address.peer);
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let Some(key) = self.counted else { return };
        let mut open = self.registry.open.lock();
        if let Some(connections) = open.per_address.get_mut(&key) {
            *connections -= 1;
            if *connections == 0 {
                open.per_address.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate::model::policy::Network;

    use super::*;

    fn connections(limit: u32, limit_per_address: u32) -> Connections {
        let mut settings = Settings::new("http://127.0.0.1:9000".parse().expect("an upstream"));
        settings.limits.connections = limit;
        settings.limits.connections_per_address = limit_per_address;
        settings.trusted_proxies.set(vec![Network::parse("10.0.0.0/8").expect("a network")]);
        Connections::new(&settings)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn open(connections: &Connections, peer: &str) -> ConnectionSlot {
        let slot = connections.admit(address(peer)).expect("below the limit of the address");
        let permit = connections.try_permit().expect("a permit");
        connections.open(permit, slot, Arc::new(Conversation::begin()))
    }

    #[tokio::test]
    async fn an_address_opens_as_many_connections_as_it_may_and_trusted_proxies_any_number() {
        let connections = connections(100, 2);
        let mut opened = vec![open(&connections, "192.0.2.1"), open(&connections, "192.0.2.1")];
        assert!(connections.admit(address("192.0.2.1")).is_none());
        assert!(connections.admit(address("::ffff:192.0.2.1")).is_none());
        assert!(connections.admit(address("192.0.2.2")).is_some());
        opened.pop();
        opened.push(open(&connections, "192.0.2.1"));
        let of_one_subnet = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::"];
        opened.extend(of_one_subnet.map(|peer| open(&connections, peer)));
        assert!(connections.admit(address("2001:db8:1:2::3")).is_none());
        assert!(connections.admit(address("2001:db8:1:3::1")).is_some());
        opened.extend((0..10).map(|_| open(&connections, "10.1.2.3")));
        drop(opened);
        assert!(connections.0.open.lock().per_address.is_empty());
        assert!(connections.0.open.lock().by_number.is_empty());
        assert_eq!(connections.0.metrics.closed(CloseReason::AddressLimit), 3);
    }

    #[tokio::test]
    async fn without_a_limit_per_address_one_address_may_use_all_connections() {
        let connections = connections(10, 0);
        let opened: Vec<_> = (0..10).map(|_| open(&connections, "192.0.2.1")).collect();
        assert!(connections.try_permit().is_none());
        assert_eq!(connections.in_use(), 10);
        drop(opened);
        assert_eq!(connections.in_use(), 0);
    }

    #[tokio::test]
    async fn a_full_proxy_evicts_the_longest_idle_connections_and_none_with_a_request() {
        let connections = connections(4, 0);
        let opened: Vec<_> = (0..4).map(|_| open(&connections, "192.0.2.1")).collect();
        opened[0].conversation().begin_exchange();
        let now = Instant::now();
        connections.0.evict(now);
        let evicted = || {
            let is_evicted =
                |slot: &ConnectionSlot| slot.conversation().close_reason() == CloseReason::Evicted;
            opened.iter().map(is_evicted).collect::<Vec<_>>()
        };
        assert_eq!(evicted(), [false; 4], "nothing is idle for long enough");
        let later = Instant::now() + EVICTABLE_AFTER;
        for expected in [[false, true, false, false], [false, true, true, false]] {
            connections.0.evict(later);
            assert_eq!(evicted(), expected);
        }
        connections.0.evict(later);
        connections.0.evict(later);
        assert_eq!(evicted(), [false, true, true, true]);
    }

    #[tokio::test]
    async fn nearly_full_is_more_than_four_fifths() {
        let connections = connections(10, 0);
        let mut opened: Vec<_> = (0..8).map(|_| open(&connections, "192.0.2.1")).collect();
        assert!(!opened[0].is_nearly_full());
        opened.push(open(&connections, "192.0.2.1"));
        assert!(opened[0].is_nearly_full());
    }
}
