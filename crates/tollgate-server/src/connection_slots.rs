//! The connection slots of a listener: the number of clients that the listener serves, and the
//! choice of the connections that are closed when no slot is free.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tollgate_http::{
    Admission, ConnectionObserver, ConnectionRules, Connections, EVICTABLE_AFTER, Evictable,
};

use crate::listener_counters::ListenerCounters;

/// The shortest time without a request after which a connection may be closed to free its slot for
/// another client.
pub const LEAST_IDLE: Duration = EVICTABLE_AFTER;

/// The shortest time between two log lines which report that a listener is full.
const FULL_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The value of `SlotState::idle_since` for a connection that is serving a request.
const BUSY: u64 = u64::MAX;

/// The connection slots of a listener: the number of clients that the listener serves, and the
/// maximum.
///
/// If no slot is free, the listener closes the connections that have been without a request for the
/// longest time. A client that opens many connections and leaves them idle therefore cannot keep
/// other clients out.
#[derive(Clone)]
pub struct ConnectionSlots {
    /// The name of the listener.
    pub listener: &'static str,
    /// The most connections at the same time.
    pub at_once: u32,
    connections: Connections<SlotState, SlotObserver>,
    /// The start of the listener, from which `idle_since` is measured.
    started_at: Instant,
}

/// Counts the connections of a listener.
#[derive(Debug)]
pub(crate) struct SlotObserver {
    listener: &'static str,
    open: AtomicU32,
    counters: Arc<ListenerCounters>,
    full_logged: Mutex<Option<Instant>>,
}

/// The state that a connection shares with its listener.
#[derive(Debug)]
pub(crate) struct SlotState {
    started_at: Instant,
    /// The time at which the connection became idle, in microseconds since `started_at`, or
    /// [`BUSY`] while the connection serves a request.
    idle_since: AtomicU64,
    evicted: Notify,
}

impl ConnectionSlots {
    pub(crate) fn new(listener: &'static str, at_once: u32) -> Self {
        let observer = SlotObserver {
            listener,
            open: AtomicU32::new(0),
            counters: Arc::new(ListenerCounters::new(listener)),
            full_logged: Mutex::default(),
        };
        let connections = Connections::new(ConnectionRules::in_total(at_once), observer);
        Self { listener, at_once, connections, started_at: Instant::now() }
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.connections.observer().open.load(Ordering::Relaxed)
    }

    /// Returns the counters of the mistakes that clients make.
    #[must_use]
    pub fn counters(&self) -> &Arc<ListenerCounters> {
        &self.connections.observer().counters
    }

    /// Returns the connections of the listener, for its accept loop.
    pub(crate) const fn registry(&self) -> &Connections<SlotState, SlotObserver> {
        &self.connections
    }

    /// Assigns a slot to an admitted client. The connection counts as busy until the first call of
    /// [`ConnectionSlot::mark_idle`].
    pub(crate) fn open(&self, admission: Admission<SlotState, SlotObserver>) -> ConnectionSlot {
        let state = SlotState {
            started_at: self.started_at,
            idle_since: AtomicU64::new(BUSY),
            evicted: Notify::new(),
        };
        ConnectionSlot(admission.open(Arc::new(state)))
    }

    /// Assigns a slot to a client without an address. Returns `None` if no slot is free.
    #[cfg(test)]
    pub(crate) fn try_slot(&self) -> Option<ConnectionSlot> {
        Some(self.open(self.connections.try_admit(None)?))
    }

    /// Waits until no slot is in use.
    pub(crate) async fn all_free(&self) {
        self.connections.all_closed().await;
    }

    /// Returns the number of slots in use, including one that is reserved for the next client.
    pub(crate) fn taken(&self) -> u32 {
        self.connections.in_use()
    }
}

impl ConnectionObserver<SlotState> for SlotObserver {
    fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    fn closed(&self, _: &SlotState, _: Option<IpAddr>) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Listeners have no limit of connections per address, so this function is never called.
    fn address_limit_reached(&self, _: IpAddr) {}

    fn all_in_use(&self, at_once: u32) {
        let mut logged = self.full_logged.lock();
        if logged.is_some_and(|logged| logged.elapsed() < FULL_LOG_INTERVAL) {
            return;
        }
        *logged = Some(Instant::now());
        tracing::warn!(
            listener = self.listener,
            "all {at_once} connections are in use: the longest idle ones are closed for new \
             clients, and new clients wait while none is idle; look for clients that open many \
             connections"
        );
    }
}

impl SlotState {
    fn since_start(&self, moment: Instant) -> u64 {
        let passed = moment.saturating_duration_since(self.started_at);
        u64::try_from(passed.as_micros()).unwrap_or(BUSY)
    }
}

impl Evictable for SlotState {
    fn evictable_since(&self) -> Option<Instant> {
        let since = self.idle_since.load(Ordering::Relaxed);
        (since != BUSY).then(|| self.started_at + Duration::from_micros(since))
    }

    fn evict(&self, since: Instant) {
        // A connection that was asked to close counts as busy, so it is not asked again. A
        // connection that has received a request since `since` is skipped.
        let since = self.since_start(since);
        let leaves =
            self.idle_since.compare_exchange(since, BUSY, Ordering::Relaxed, Ordering::Relaxed);
        if leaves.is_ok() {
            self.evicted.notify_one();
        }
    }
}

impl fmt::Debug for ConnectionSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener, at_once, .. } = self;
        let connections = self.connections();
        f.debug_struct("ConnectionSlots")
            .field("listener", listener)
            .field("at_once", at_once)
            .field("connections", &connections)
            .finish()
    }
}

/// A slot in use. Dropping this value frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(tollgate_http::ConnectionSlot<SlotState, SlotObserver>);

impl ConnectionSlot {
    /// Marks the connection as busy: a request is being served.
    pub(crate) fn mark_busy(&self) {
        self.0.connection().idle_since.store(BUSY, Ordering::Relaxed);
    }

    /// Marks the connection as idle since `since`.
    pub(crate) fn mark_idle(&self, since: Instant) {
        let state = self.0.connection();
        state.idle_since.store(state.since_start(since), Ordering::Relaxed);
    }

    /// Returns the counters of the listener.
    pub(crate) fn counters(&self) -> &Arc<ListenerCounters> {
        &self.0.observer().counters
    }

    /// Resolves when another client needs the slot and this connection has been idle for the
    /// longest time.
    pub(crate) fn eviction(&self) -> impl Future<Output = ()> + Send + use<> {
        let state = Arc::clone(self.0.connection());
        async move { state.evicted.notified().await }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_was_idle_for_longest_is_asked_and_nobody_at_work_or_lately() {
        let slots = ConnectionSlots::new("test", 4);
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(slots.try_slot().expect("a free slot"));
        }
        let started_at = slots.started_at;
        let now = started_at + 10 * LEAST_IDLE;
        taken[0].mark_idle(started_at + LEAST_IDLE);
        taken[1].mark_idle(started_at);
        taken[2].mark_idle(now);
        let evicted = || {
            slots.connections.evict(now);
            let is_evicted = |slot: &ConnectionSlot| slot.eviction().now_or_never().is_some();
            taken.iter().map(is_evicted).collect::<Vec<_>>()
        };
        assert_eq!(evicted(), [false, true, false, false]);
        assert_eq!(evicted(), [true, false, false, false]);
        assert_eq!(evicted(), [false; 4]);
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_its_connection_ends() {
        let slots = ConnectionSlots::new("test", 1);
        let slot = slots.try_slot().expect("a free slot");
        assert_eq!((slots.connections(), slots.taken()), (1, 1));
        assert!(slots.try_slot().is_none());
        drop(slot);
        assert_eq!((slots.connections(), slots.taken()), (0, 0));
        assert!(slots.try_slot().is_some());
    }
}
