//! The client connections of a listening socket: their limits in total and for each address, and
//! the choice of the connections that are closed to make room for new clients.
//!
//! The module is written by hand, because hyper, axum and tower can limit the number of
//! connections, but do not close idle connections to make room. With such a limit alone, one client
//! that opens 10,000 idle connections locks out all other clients.

use std::{collections::HashMap, fmt, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use crate::address_key::AddressKey;

/// The shortest time for which a connection must have been idle, or must have had an incomplete
/// request head, before it is closed to make room.
pub const EVICTABLE_AFTER: Duration = Duration::from_secs(1);

/// The divisor that determines how many connections are closed at once when no permit is free: the
/// limit of connections divided by 128, rounded up. Each search for the connections that have been
/// idle for the longest time reads all connections. Closing one connection for each search would
/// therefore take quadratic time.
const EVICTED_SHARE: usize = 128;

/// The interval at which idle connections are closed while all connections of a socket are in use
/// and a client waits.
const EVICT_EVERY: Duration = Duration::from_millis(250);

/// A socket is nearly full when more than this percentage of its connections is in use.
const NEARLY_FULL_PERCENT: u64 = 80;

/// A connection that can be closed to make room for another.
pub trait Evictable: Send + Sync + 'static {
    /// Returns the time since which the connection has been idle, or its request head incomplete.
    /// Returns `None` while a request is in flight, and after the connection was asked to close.
    fn evictable_since(&self) -> Option<Instant>;

    /// Asks the connection to close. `since` is the time that
    /// [`evictable_since`](Self::evictable_since) returned before. The connection need not close if
    /// it has received a request since then.
    fn evict(&self, since: Instant);
}

/// Counts and logs events of connections.
pub trait ConnectionObserver<C>: Send + Sync + 'static {
    /// Called after a connection was opened.
    fn opened(&self);

    /// Called after the connection of `peer` was closed.
    fn closed(&self, connection: &C, peer: Option<IpAddr>);

    /// Called when a connection of `peer` is refused, because its address has reached its limit.
    fn address_limit_reached(&self, peer: IpAddr);

    /// Called when a client has to wait, because all `limit` connections are in use.
    fn all_in_use(&self, limit: u32);
}

/// The limits on the number of connections.
pub struct ConnectionRules {
    /// The most connections that may be open at the same time.
    pub limit: u32,
    /// The most connections of one IPv4 address or one /64 subnet of IPv6. 0 means no limit.
    pub limit_per_address: u32,
    /// Returns whether a canonical address is exempt from `limit_per_address`.
    pub exempt: Box<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Whether an idle connection is closed as soon as all connections are in use, so the next
    /// client need not wait.
    pub keeps_one_free: bool,
}

impl ConnectionRules {
    /// Creates rules that limit only the total number of connections, and that keep one connection
    /// free for the next client.
    #[must_use]
    pub fn in_total(limit: u32) -> Self {
        Self { limit, limit_per_address: 0, exempt: Box::new(|_| false), keeps_one_free: true }
    }
}

impl fmt::Debug for ConnectionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionRules")
            .field("limit", &self.limit)
            .field("limit_per_address", &self.limit_per_address)
            .finish_non_exhaustive()
    }
}

/// All client connections of a socket. Clones share their state.
#[derive(Debug)]
pub struct Connections<C, O>(Arc<Registry<C, O>>);

impl<C, O> Clone for Connections<C, O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Registry<C, O> {
    rules: ConnectionRules,
    permits: Arc<Semaphore>,
    observer: O,
    open: Mutex<Open<C>>,
}

/// The open connections under their numbers, and the number of connections of each address. Each
/// connection or client that is counted here has a permit or waits for one, so the number of
/// permits bounds both maps.
#[derive(Debug)]
struct Open<C> {
    last_number: u64,
    by_number: HashMap<u64, Arc<C>>,
    per_address: HashMap<AddressKey, u32>,
}

/// A connection that is counted against the limit of its address. Dropping this value ends the
/// count.
#[derive(Debug)]
pub(crate) struct OfAddress<C, O> {
    registry: Arc<Registry<C, O>>,
    /// The key under which the connection is counted; `None` if the address has no limit.
    counted: Option<AddressKey>,
    peer: Option<IpAddr>,
}

/// The permit of a client to open a connection.
#[derive(Debug)]
pub struct Admission<C, O> {
    address: OfAddress<C, O>,
    permit: OwnedSemaphorePermit,
}

/// An open client connection. Dropping this value counts the connection as closed and releases its
/// permit.
#[derive(Debug)]
pub struct ConnectionSlot<C: Evictable, O: ConnectionObserver<C>> {
    number: u64,
    connection: Arc<C>,
    address: OfAddress<C, O>,
    _permit: OwnedSemaphorePermit,
}

impl<C: Evictable, O: ConnectionObserver<C>> Connections<C, O> {
    /// Creates a registry without connections.
    pub fn new(rules: ConnectionRules, observer: O) -> Self {
        let permits = Arc::new(Semaphore::new(rules.limit as usize));
        let open = Open { last_number: 0, by_number: HashMap::new(), per_address: HashMap::new() };
        Self(Arc::new(Registry { rules, permits, observer, open: Mutex::new(open) }))
    }

    /// Counts a new connection of `peer` for the limit of its address. Returns `None` if the
    /// address has reached its limit.
    pub(crate) fn count_address(&self, peer: Option<IpAddr>) -> Option<OfAddress<C, O>> {
        let registry = Arc::clone(&self.0);
        let limit = registry.rules.limit_per_address;
        let limited = peer
            .filter(|_| limit > 0)
            .map(|peer| (peer, peer.to_canonical()))
            .filter(|(_, address)| !(registry.rules.exempt)(*address));
        let Some((client, address)) = limited else {
            return Some(OfAddress { registry, counted: None, peer });
        };
        let key = AddressKey::of(address);
        let mut open = registry.open.lock();
        let connections = open.per_address.entry(key).or_default();
        if *connections >= limit {
            drop(open);
            registry.observer.address_limit_reached(client);
            return None;
        }
        *connections += 1;
        drop(open);
        Some(OfAddress { registry, counted: Some(key), peer })
    }

    /// Waits for a permit that is kept free for the next client. Returns `None` at once if
    /// [`keeps_one_free`](ConnectionRules::keeps_one_free) is false.
    pub(crate) async fn reserve(&self) -> Option<OwnedSemaphorePermit> {
        match self.0.rules.keeps_one_free {
            true => Some(self.permit().await),
            false => None,
        }
    }

    /// Waits for a permit. While no permit is free, the function asks the connections that have
    /// been idle for the longest time to close.
    pub(crate) async fn permit(&self) -> OwnedSemaphorePermit {
        loop {
            if let Some(permit) = self.try_permit() {
                return permit;
            }
            self.0.observer.all_in_use(self.0.rules.limit);
            self.evict(Instant::now());
            let permit = Arc::clone(&self.0.permits).acquire_owned();
            // The semaphore is never closed, so there is no inner error.
            if let Ok(Ok(permit)) = timeout(EVICT_EVERY, permit).await {
                return permit;
            }
        }
    }

    fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.permits).try_acquire_owned().ok()
    }

    /// Admits a client that `address` counts for the limit of its address. Returns `None` if no
    /// permit is free.
    pub(crate) fn try_admission(&self, address: OfAddress<C, O>) -> Option<Admission<C, O>> {
        Some(address.with(self.try_permit()?))
    }

    /// Counts a client with the address `peer` and admits the client. Returns `None` if the address
    /// has reached its limit or no permit is free.
    #[must_use]
    pub fn try_admit(&self, peer: Option<IpAddr>) -> Option<Admission<C, O>> {
        self.try_admission(self.count_address(peer)?)
    }

    /// Waits until no connection is open.
    pub async fn all_closed(&self) {
        // The semaphore is never closed, so there is no error.
        let _ = self.0.permits.acquire_many(self.0.rules.limit).await;
    }

    /// Returns the number of permits in use, including a permit that is reserved for the next
    /// client.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.0.in_use()
    }

    /// Returns the observer that counts the connections.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.0.observer
    }

    /// Asks connections to close that have been idle at `now` for at least [`EVICTABLE_AFTER`], the
    /// longest idle connections first. The number of these connections is at most the limit divided
    /// by `EVICTED_SHARE`, rounded up.
    pub fn evict(&self, now: Instant) {
        let Some(latest) = now.checked_sub(EVICTABLE_AFTER) else { return };
        let open = self.0.open.lock();
        let mut idle: Vec<_> = open
            .by_number
            .values()
            .filter_map(|connection| {
                let since = connection.evictable_since()?;
                (since <= latest).then(|| (since, Arc::clone(connection)))
            })
            .collect();
        drop(open);
        let count = (self.0.rules.limit as usize).div_ceil(EVICTED_SHARE).min(idle.len());
        if count < idle.len() {
            idle.select_nth_unstable_by_key(count, |(since, _)| *since);
        }
        for (since, connection) in idle.drain(..count) {
            connection.evict(since);
        }
    }
}

impl<C, O> Registry<C, O> {
    fn in_use(&self) -> u32 {
        let limit = self.rules.limit;
        let free = u32::try_from(self.permits.available_permits()).unwrap_or(limit);
        limit.saturating_sub(free)
    }
}

impl<C, O> OfAddress<C, O> {
    pub(crate) fn with(self, permit: OwnedSemaphorePermit) -> Admission<C, O> {
        Admission { address: self, permit }
    }
}

impl<C: Evictable, O: ConnectionObserver<C>> Admission<C, O> {
    /// Registers `connection` as the open connection of the admitted client.
    #[must_use]
    pub fn open(self, connection: Arc<C>) -> ConnectionSlot<C, O> {
        let Self { address, permit } = self;
        let mut open = address.registry.open.lock();
        open.last_number += 1;
        let number = open.last_number;
        open.by_number.insert(number, Arc::clone(&connection));
        drop(open);
        address.registry.observer.opened();
        ConnectionSlot { number, connection, address, _permit: permit }
    }
}

impl<C: Evictable, O: ConnectionObserver<C>> ConnectionSlot<C, O> {
    /// Returns the connection.
    #[must_use]
    pub fn connection(&self) -> &Arc<C> {
        &self.connection
    }

    /// Returns the address of the client. `None` on a unix domain socket.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        self.address.peer
    }

    /// Returns the observer that counts the connections.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.address.registry.observer
    }

    /// Returns whether more than four fifths of the connections are in use.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        let registry = &self.address.registry;
        let limit = u64::from(registry.rules.limit);
        u64::from(registry.in_use()) * 100 > limit * NEARLY_FULL_PERCENT
    }
}

impl<C: Evictable, O: ConnectionObserver<C>> Drop for ConnectionSlot<C, O> {
    fn drop(&mut self) {
        let registry = &self.address.registry;
        registry.open.lock().by_number.remove(&self.number);
        registry.observer.closed(&self.connection, self.address.peer);
    }
}

impl<C, O> Drop for OfAddress<C, O> {
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
    use super::*;
    use crate::{CloseReason, ConnectionMetrics, Conversation};

    type Clients = Connections<Conversation, ConnectionMetrics>;
    type Client = ConnectionSlot<Conversation, ConnectionMetrics>;

    fn connections(limit: u32, limit_per_address: u32) -> Clients {
        let exempt = |address| matches!(address, IpAddr::V4(it) if it.octets()[0] == 10);
        let exempt = Box::new(exempt);
        let rules = ConnectionRules { limit, limit_per_address, exempt, keeps_one_free: false };
        Connections::new(rules, ConnectionMetrics::default())
    }

    fn admit(
        connections: &Clients,
        peer: &str,
    ) -> Option<Admission<Conversation, ConnectionMetrics>> {
        connections.try_admit(Some(peer.parse().expect("an address")))
    }

    fn open(connections: &Clients, peer: &str) -> Client {
        let admission = admit(connections, peer).expect("below the limits");
        admission.open(Arc::new(Conversation::begin()))
    }

    #[tokio::test]
    async fn an_address_opens_as_many_connections_as_it_may_and_trusted_proxies_any_number() {
        let connections = connections(100, 2);
        let mut opened = vec![open(&connections, "192.0.2.1"), open(&connections, "192.0.2.1")];
        assert!(admit(&connections, "192.0.2.1").is_none());
        assert!(admit(&connections, "::ffff:192.0.2.1").is_none());
        assert!(admit(&connections, "192.0.2.2").is_some());
        opened.pop();
        opened.push(open(&connections, "192.0.2.1"));
        let of_one_subnet = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::"];
        opened.extend(of_one_subnet.map(|peer| open(&connections, peer)));
        assert!(admit(&connections, "2001:db8:1:2::3").is_none());
        assert!(admit(&connections, "2001:db8:1:3::1").is_some());
        opened.extend((0..10).map(|_| open(&connections, "10.1.2.3")));
        drop(opened);
        assert!(connections.0.open.lock().per_address.is_empty());
        assert!(connections.0.open.lock().by_number.is_empty());
        assert_eq!(connections.observer().closed(CloseReason::AddressLimit), 3);
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
        opened[0].connection().begin_exchange();
        let now = Instant::now();
        connections.evict(now);
        let evicted = || {
            let is_evicted =
                |slot: &Client| slot.connection().close_reason() == CloseReason::Evicted;
            opened.iter().map(is_evicted).collect::<Vec<_>>()
        };
        assert_eq!(evicted(), [false; 4], "nothing is idle for long enough");
        let later = Instant::now() + EVICTABLE_AFTER;
        for expected in [[false, true, false, false], [false, true, true, false]] {
            connections.evict(later);
            assert_eq!(evicted(), expected);
        }
        connections.evict(later);
        connections.evict(later);
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
