//! The connection slots of a listener: how many clients it serves, and which connections are closed
//! when no slot is free.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::listener_counters::ListenerCounters;

/// The shortest time without a request after which a connection may be closed to free its slot for
/// another client.
pub const LEAST_IDLE: Duration = Duration::from_secs(1);

/// The divisor for connections closed at once when no slot is free (one of 128 slots, at least
/// one). Closing several at once saves scans, because finding the connections that are idle for
/// longest reads all of them.
const EVICTED_PART: usize = 128;

/// How often a listener without a free slot looks for idle connections.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The shortest time between two log lines which report that a listener is full.
const FULL_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The value of `idle_since` while a request is being served.
const BUSY: u64 = u64::MAX;

/// The number of clients that a listener serves, and its maximum.
///
/// If no slot is free, the connections that have been without a request for the longest time are
/// closed. A client that opens many connections and leaves them idle cannot keep other clients out.
#[derive(Clone)]
pub struct ConnectionSlots {
    /// The name of the listener.
    pub listener: &'static str,
    /// The most connections at the same time.
    pub at_once: u32,
    free: Arc<Semaphore>,
    taken: Arc<UsedSlots>,
}

/// The state of the slots that are in use.
#[derive(Debug)]
struct UsedSlots {
    /// The start of the listener. Times are measured from here.
    started_at: Instant,
    /// The number of connections, readable without the lock.
    count: AtomicU32,
    counters: Arc<ListenerCounters>,
    table: Mutex<SlotTable>,
}

#[derive(Debug, Default)]
struct SlotTable {
    last: u64,
    by_number: HashMap<u64, Arc<SlotState>>,
    full_logged: Option<Instant>,
}

/// The state that a connection shares with its listener.
#[derive(Debug)]
struct SlotState {
    /// When the connection became idle, in microseconds since `started_at`, or [`BUSY`] while it
    /// serves a request.
    idle_since: AtomicU64,
    evicted: Notify,
}

impl ConnectionSlots {
    pub(crate) fn new(listener: &'static str, at_once: u32) -> Self {
        let taken = UsedSlots {
            started_at: Instant::now(),
            count: AtomicU32::new(0),
            counters: Arc::new(ListenerCounters::new(listener)),
            table: Mutex::default(),
        };
        let free = Arc::new(Semaphore::new(at_once as usize));
        Self { listener, at_once, free, taken: Arc::new(taken) }
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.taken.count.load(Ordering::Relaxed)
    }

    /// Returns the counters of what clients do wrong.
    #[must_use]
    pub fn counters(&self) -> &Arc<ListenerCounters> {
        &self.taken.counters
    }

    /// Waits for a free slot. While none is free, it asks idle connections to close.
    pub(crate) async fn free_slot(&self) -> FreeSlot {
        loop {
            if self.free.available_permits() == 0 {
                self.log_full();
                self.taken.evict_idle(Instant::now(), self.at_once as usize);
            }
            let free = Arc::clone(&self.free).acquire_owned();
            // The semaphore is never closed, so there is no error.
            if let Ok(Ok(permit)) = timeout(IDLE_CHECK_INTERVAL, free).await {
                return FreeSlot { permit, taken: Arc::clone(&self.taken) };
            }
        }
    }

    /// Waits until no slot is in use.
    pub(crate) async fn all_free(&self) {
        // The semaphore is never closed, so there is no error.
        let _ = self.free.acquire_many(self.at_once).await;
    }

    /// Returns the number of slots in use, including one that is reserved for the next client.
    pub(crate) fn taken(&self) -> u32 {
        let free = u32::try_from(self.free.available_permits()).unwrap_or(self.at_once);
        self.at_once.saturating_sub(free)
    }

    /// Logs that the listener is full, at most once in [`FULL_LOG_INTERVAL`].
    fn log_full(&self) {
        let logged = &mut self.taken.table.lock().full_logged;
        if logged.is_some_and(|logged| logged.elapsed() < FULL_LOG_INTERVAL) {
            return;
        }
        *logged = Some(Instant::now());
        let Self { listener, at_once, .. } = self;
        tracing::warn!(
            listener,
            "all {at_once} connections are in use: the longest idle ones are closed for new \
             clients, and new clients wait while none is idle; look for clients that open many \
             connections"
        );
    }
}

impl UsedSlots {
    /// Asks the connections that have been idle for the longest time at `now` to close: one, or one
    /// of [`EVICTED_PART`] if `at_once` is larger than that.
    fn evict_idle(&self, now: Instant, at_once: usize) {
        let Some(latest) = now.checked_sub(LEAST_IDLE) else { return };
        let latest = self.since_start(latest);
        let table = self.table.lock();
        let idle = |state: &Arc<SlotState>| {
            let since = state.idle_since.load(Ordering::Relaxed);
            (since <= latest).then(|| (since, Arc::clone(state)))
        };
        let mut idle: Vec<_> = table.by_number.values().filter_map(idle).collect();
        drop(table);
        let asked = at_once.div_ceil(EVICTED_PART).min(idle.len());
        if asked < idle.len() {
            idle.select_nth_unstable_by_key(asked, |(since, _)| *since);
        }
        for (since, state) in idle.drain(..asked) {
            // A connection that was asked counts as busy, so it is not asked again. One that has
            // received a request since then is skipped.
            let leaves = state.idle_since.compare_exchange(
                since,
                BUSY,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if leaves.is_ok() {
                state.evicted.notify_one();
            }
        }
    }

    fn since_start(&self, moment: Instant) -> u64 {
        let passed = moment.saturating_duration_since(self.started_at);
        u64::try_from(passed.as_micros()).unwrap_or(BUSY)
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

/// A free slot that is reserved for the next client.
#[derive(Debug)]
pub(crate) struct FreeSlot {
    permit: OwnedSemaphorePermit,
    taken: Arc<UsedSlots>,
}

impl FreeSlot {
    /// Assigns the slot to a connection. The connection counts as busy until it calls
    /// [`ConnectionSlot::mark_idle`].
    pub(crate) fn take(self) -> ConnectionSlot {
        let Self { permit, taken } = self;
        let state = SlotState { idle_since: AtomicU64::new(BUSY), evicted: Notify::new() };
        let state = Arc::new(state);
        let mut table = taken.table.lock();
        table.last += 1;
        let number = table.last;
        table.by_number.insert(number, Arc::clone(&state));
        drop(table);
        taken.count.fetch_add(1, Ordering::Relaxed);
        ConnectionSlot { state, number, taken, _permit: permit }
    }
}

/// A slot in use. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    state: Arc<SlotState>,
    number: u64,
    taken: Arc<UsedSlots>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlot {
    /// Marks the connection as busy: a request is being served.
    pub(crate) fn mark_busy(&self) {
        self.state.idle_since.store(BUSY, Ordering::Relaxed);
    }

    /// Marks the connection as idle since `since`.
    pub(crate) fn mark_idle(&self, since: Instant) {
        self.state.idle_since.store(self.taken.since_start(since), Ordering::Relaxed);
    }

    /// Returns the counters of the listener.
    pub(crate) fn counters(&self) -> &Arc<ListenerCounters> {
        &self.taken.counters
    }

    /// Resolves when the slot is needed for another client, because this connection has been idle
    /// for the longest time.
    pub(crate) fn eviction(&self) -> impl Future<Output = ()> + Send + use<> {
        let state = Arc::clone(&self.state);
        async move { state.evicted.notified().await }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.taken.count.fetch_sub(1, Ordering::Relaxed);
        self.taken.table.lock().by_number.remove(&self.number);
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
            taken.push(slots.free_slot().await.take());
        }
        let started_at = slots.taken.started_at;
        let now = started_at + 10 * LEAST_IDLE;
        taken[0].mark_idle(started_at + LEAST_IDLE);
        taken[1].mark_idle(started_at);
        taken[2].mark_idle(now);
        let asked = || {
            slots.taken.evict_idle(now, 4);
            let is_asked = |slot: &ConnectionSlot| slot.eviction().now_or_never().is_some();
            taken.iter().map(is_asked).collect::<Vec<_>>()
        };
        assert_eq!(asked(), [false, true, false, false]);
        assert_eq!(asked(), [true, false, false, false]);
        assert_eq!(asked(), [false; 4]);
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_its_connection_ends() {
        let slots = ConnectionSlots::new("test", 1);
        let slot = slots.free_slot().await.take();
        assert_eq!((slots.connections(), slots.taken()), (1, 1));
        assert!(slots.free_slot().now_or_never().is_none());
        drop(slot);
        assert_eq!((slots.connections(), slots.taken()), (0, 0));
        assert!(slots.taken.table.lock().by_number.is_empty());
        assert!(slots.free_slot().now_or_never().is_some());
    }
}
