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

/// The shortest time without a request after which a connection may be closed to free its slot for
/// another client.
pub const LEAST_IDLE: Duration = Duration::from_secs(1);

/// The divisor for connections closed at once when no slot is free (one of 128 slots, at least
/// one). Closing several at once saves scans, because finding the connections that are idle for
/// longest reads all of them.
const PART_AT_ONCE: usize = 128;

/// How often a listener without a free slot looks for idle connections.
const LOOKED_EVERY: Duration = Duration::from_millis(250);

/// The shortest time between two log lines which report that a listener is full.
const FULL_TOLD_EVERY: Duration = Duration::from_secs(10);

/// The value of `idle_since` while a request is being served.
const AT_WORK: u64 = u64::MAX;

/// The number of clients that a listener serves, and its maximum.
///
/// If no slot is free, the connections that have been without a request for the longest time are
/// closed. A client that opens many connections and leaves them idle cannot keep other clients out.
#[derive(Clone)]
pub struct Places {
    /// The name of the listener.
    pub door: &'static str,
    /// The most connections at the same time.
    pub at_once: u32,
    free: Arc<Semaphore>,
    taken: Arc<Taken>,
}

/// The state of the slots that are in use.
#[derive(Debug)]
struct Taken {
    /// The start of the listener. Times are measured from here.
    began: Instant,
    /// The number of connections, readable without the lock.
    count: AtomicU32,
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    last: u64,
    by_number: HashMap<u64, Arc<Seat>>,
    full_told: Option<Instant>,
}

/// The state that a connection shares with its listener.
#[derive(Debug)]
struct Seat {
    /// When the connection became idle, in microseconds since `began`, or [`AT_WORK`] while it
    /// serves a request.
    idle_since: AtomicU64,
    is_wanted: Notify,
}

impl Places {
    pub(crate) fn new(door: &'static str, at_once: u32) -> Self {
        let taken =
            Taken { began: Instant::now(), count: AtomicU32::new(0), seats: Mutex::default() };
        let free = Arc::new(Semaphore::new(at_once as usize));
        Self { door, at_once, free, taken: Arc::new(taken) }
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.taken.count.load(Ordering::Relaxed)
    }

    /// Waits for a free slot. While none is free, it asks idle connections to close.
    pub(crate) async fn vacancy(&self) -> Vacancy {
        loop {
            if self.free.available_permits() == 0 {
                self.tell_full();
                self.taken.ask_idle(Instant::now(), self.at_once as usize);
            }
            let free = Arc::clone(&self.free).acquire_owned();
            // The semaphore is never closed, so there is no error.
            if let Ok(Ok(permit)) = timeout(LOOKED_EVERY, free).await {
                return Vacancy { permit, taken: Arc::clone(&self.taken) };
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

    /// Logs that the listener is full, at most once in [`FULL_TOLD_EVERY`].
    fn tell_full(&self) {
        let told = &mut self.taken.seats.lock().full_told;
        if told.is_some_and(|told| told.elapsed() < FULL_TOLD_EVERY) {
            return;
        }
        *told = Some(Instant::now());
        let Self { door, at_once, .. } = self;
        tracing::warn!(
            listener = door,
            "all {at_once} connections are in use: the longest idle ones are closed for new \
             clients, and new clients wait while none is idle; look for clients that open many \
             connections"
        );
    }
}

impl Taken {
    /// Asks the connections that have been idle for the longest time at `now` to close: one, or one
    /// of [`PART_AT_ONCE`] if `at_once` is larger than that.
    fn ask_idle(&self, now: Instant, at_once: usize) {
        let Some(latest) = now.checked_sub(LEAST_IDLE) else { return };
        let latest = self.since_began(latest);
        let seats = self.seats.lock();
        let idle = |seat: &Arc<Seat>| {
            let since = seat.idle_since.load(Ordering::Relaxed);
            (since <= latest).then(|| (since, Arc::clone(seat)))
        };
        let mut idle: Vec<_> = seats.by_number.values().filter_map(idle).collect();
        drop(seats);
        let asked = at_once.div_ceil(PART_AT_ONCE).min(idle.len());
        if asked < idle.len() {
            idle.select_nth_unstable_by_key(asked, |(since, _)| *since);
        }
        for (since, seat) in idle.drain(..asked) {
            // A connection that was asked counts as busy, so it is not asked again. One that has
            // received a request since then is skipped.
            let leaves = seat.idle_since.compare_exchange(
                since,
                AT_WORK,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if leaves.is_ok() {
                seat.is_wanted.notify_one();
            }
        }
    }

    fn since_began(&self, moment: Instant) -> u64 {
        let passed = moment.saturating_duration_since(self.began);
        u64::try_from(passed.as_micros()).unwrap_or(AT_WORK)
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { door, at_once, .. } = self;
        let connections = self.connections();
        f.debug_struct("Places")
            .field("door", door)
            .field("at_once", at_once)
            .field("connections", &connections)
            .finish()
    }
}

/// A free slot that is reserved for the next client.
#[derive(Debug)]
pub(crate) struct Vacancy {
    permit: OwnedSemaphorePermit,
    taken: Arc<Taken>,
}

impl Vacancy {
    /// Assigns the slot to a connection. The connection counts as busy until it calls
    /// [`Place::rest`].
    pub(crate) fn take(self) -> Place {
        let Self { permit, taken } = self;
        let seat = Seat { idle_since: AtomicU64::new(AT_WORK), is_wanted: Notify::new() };
        let seat = Arc::new(seat);
        let mut seats = taken.seats.lock();
        seats.last += 1;
        let number = seats.last;
        seats.by_number.insert(number, Arc::clone(&seat));
        drop(seats);
        taken.count.fetch_add(1, Ordering::Relaxed);
        Place { seat, number, taken, _permit: permit }
    }
}

/// A slot in use. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    seat: Arc<Seat>,
    number: u64,
    taken: Arc<Taken>,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// Marks the connection as busy: a request is being served.
    pub(crate) fn work(&self) {
        self.seat.idle_since.store(AT_WORK, Ordering::Relaxed);
    }

    /// Marks the connection as idle since `since`.
    pub(crate) fn rest(&self, since: Instant) {
        self.seat.idle_since.store(self.taken.since_began(since), Ordering::Relaxed);
    }

    /// Resolves when the slot is needed for another client, because this connection has been idle
    /// for the longest time.
    pub(crate) fn wanted(&self) -> impl Future<Output = ()> + Send + use<> {
        let seat = Arc::clone(&self.seat);
        async move { seat.is_wanted.notified().await }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.count.fetch_sub(1, Ordering::Relaxed);
        self.taken.seats.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_was_idle_for_longest_is_asked_and_nobody_at_work_or_lately() {
        let places = Places::new("test", 4);
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(places.vacancy().await.take());
        }
        let began = places.taken.began;
        let now = began + 10 * LEAST_IDLE;
        taken[0].rest(began + LEAST_IDLE);
        taken[1].rest(began);
        taken[2].rest(now);
        let asked = || {
            places.taken.ask_idle(now, 4);
            let is_asked = |place: &Place| place.wanted().now_or_never().is_some();
            taken.iter().map(is_asked).collect::<Vec<_>>()
        };
        assert_eq!(asked(), [false, true, false, false]);
        assert_eq!(asked(), [true, false, false, false]);
        assert_eq!(asked(), [false; 4]);
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_its_connection_ends() {
        let places = Places::new("test", 1);
        let place = places.vacancy().await.take();
        assert_eq!((places.connections(), places.taken()), (1, 1));
        assert!(places.vacancy().now_or_never().is_none());
        drop(place);
        assert_eq!((places.connections(), places.taken()), (0, 0));
        assert!(places.taken.seats.lock().by_number.is_empty());
        assert!(places.vacancy().now_or_never().is_some());
    }
}
