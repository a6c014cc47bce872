//! Decides when a batcher may send another call.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::CALLS_IN_FLIGHT;
use super::sync::{AtomicU64, AtomicUsize};

/// The part of the round trip time that permits one call in flight without a wait. The number of
/// permitted calls is the estimated round trip divided by this time, and at least one. Each call
/// carries the jobs that were queued during the previous call.
const ROUND_TRIP_PER_CALL: Duration = Duration::from_micros(250);

/// The maximum number of calls in flight that are sent without a wait. Further calls, up to
/// [`CALLS_IN_FLIGHT`], are spread over the round trip: if all of them were sent at the same time,
/// the next job would have to wait for a whole round trip.
const AT_ONCE: usize = CALLS_IN_FLIGHT / 2;

/// The divisor by which a call that took longer than the estimated round trip changes the estimate:
/// the estimate grows by a 32nd of the difference. A call that took less time than the estimate
/// replaces the estimate, because only the shortest calls did not wait in the network or in the
/// server.
const LONGER_CALL_SHARE: u64 = 32;

/// Counts the calls of a batcher that are in flight, and decides whether another call may be sent.
#[derive(Debug)]
pub(super) struct Pacing {
    /// The value of [`overdue_after`](super::BatcherLimits::overdue_after) in the batcher's limits.
    overdue_after: Duration,
    /// The number of calls in flight that are not overdue.
    on_time: AtomicUsize,
    /// The number of calls in flight that were sent by the callers of their jobs.
    by_callers: AtomicUsize,
    /// Wakes the driver when a call that is not overdue ends or becomes overdue.
    ended: Notify,
    created: Instant,
    /// The time at which the last call was sent, in microseconds since `created`.
    sent: AtomicU64,
    /// The estimate of the round trip, in microseconds. Zero before the first answer.
    round_trip: AtomicU64,
}

/// The permission for one call in flight. When the slot is dropped, another call may begin.
#[derive(Debug)]
pub(super) struct Slot {
    pacing: Arc<Pacing>,
    is_on_time: bool,
    is_by_caller: bool,
}

impl Pacing {
    /// Creates the pacing of a batcher that has no calls in flight.
    pub(super) fn new(overdue_after: Duration) -> Self {
        Self {
            overdue_after,
            on_time: AtomicUsize::new(0),
            by_callers: AtomicUsize::new(0),
            ended: Notify::new(),
            created: Instant::now(),
            sent: AtomicU64::new(0),
            round_trip: AtomicU64::new(0),
        }
    }

    /// Returns a slot for a call that the caller of the job sends itself, or `None` if no other
    /// call may be sent now.
    pub(super) fn try_begin(self: &Arc<Self>) -> Option<Slot> {
        if !add_below(&self.by_callers, CALLS_IN_FLIGHT) {
            return None;
        }
        let mut slot = Slot { pacing: Arc::clone(self), is_on_time: false, is_by_caller: true };
        slot.is_on_time = self.try_add();
        slot.is_on_time.then_some(slot)
    }

    /// Waits until another call may be sent, but at most for the time after which a call is
    /// overdue.
    ///
    /// The limit on calls in flight keeps the load low, and correctness does not depend on the
    /// limit. So the driver does not wait longer if a caller does not poll its call or if the
    /// server is slow.
    pub(super) async fn begin(self: &Arc<Self>) -> Slot {
        let allowed = async {
            while !self.try_add() {
                let sent = Duration::from_micros(self.sent.load(Ordering::Relaxed));
                let wait = (sent + self.spacing()).saturating_sub(self.created.elapsed());
                // Only the driver waits for this notification. A notification that is sent before
                // the driver waits is kept for the driver.
                if wait.is_zero() {
                    self.ended.notified().await;
                } else {
                    let _ = timeout(wait, self.ended.notified()).await;
                }
            }
        };
        let is_on_time = timeout(self.overdue_after(), allowed).await.is_ok();
        Slot { pacing: Arc::clone(self), is_on_time, is_by_caller: false }
    }

    /// Returns the number of calls in flight that are not overdue, and the number of calls in
    /// flight that were sent by the callers of their jobs.
    #[cfg(all(test, shuttle))]
    pub(super) fn in_flight(&self) -> (usize, usize) {
        (self.on_time.load(Ordering::Acquire), self.by_callers.load(Ordering::Acquire))
    }

    /// Counts a call if another call may be sent now. Returns whether the call was counted.
    fn try_add(&self) -> bool {
        let now = micros(self.created.elapsed());
        if add_below(&self.on_time, self.allowed()) {
            self.sent.store(now, Ordering::Relaxed);
            return true;
        }
        let sent = self.sent.load(Ordering::Relaxed);
        let is_further = now.saturating_sub(sent) >= micros(self.spacing())
            && add_below(&self.on_time, CALLS_IN_FLIGHT);
        if is_further {
            self.sent.store(now, Ordering::Relaxed);
        }
        is_further
    }

    /// Returns how many calls that are not overdue may be in flight without a wait.
    pub(super) fn allowed(&self) -> usize {
        let round_trip = u128::from(self.round_trip.load(Ordering::Relaxed));
        let calls = round_trip / ROUND_TRIP_PER_CALL.as_micros();
        usize::try_from(calls).unwrap_or(AT_ONCE).clamp(1, AT_ONCE)
    }

    /// Returns the shortest time between two calls if more than [`Self::allowed`] calls are in
    /// flight.
    fn spacing(&self) -> Duration {
        let calls = u32::try_from(CALLS_IN_FLIGHT - AT_ONCE).unwrap_or(1);
        self.overdue_after.max(self.round_trip().unwrap_or_default() / calls)
    }

    /// Returns the time after which a call is overdue. An overdue call does not prevent other calls
    /// from being sent.
    pub(super) fn overdue_after(&self) -> Duration {
        self.overdue_after.max(self.round_trip().unwrap_or_default() * 2)
    }

    /// Returns the estimated round trip, without the time for which calls wait in the network or in
    /// the server. Returns `None` before the first reply.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        let micros = self.round_trip.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    /// Updates the estimated round trip with the duration of an answered call. If several calls end
    /// at the same time, one update may overwrite another.
    pub(super) fn observe(&self, taken: Duration) {
        let taken = micros(taken).max(1);
        let estimate = match self.round_trip.load(Ordering::Relaxed) {
            0 => taken,
            known if taken < known => taken,
            known => known + (taken - known) / LONGER_CALL_SHARE,
        };
        self.round_trip.store(estimate, Ordering::Relaxed);
    }
}

impl Slot {
    /// Returns the time after which the call of this slot is overdue.
    pub(super) fn overdue_after(&self) -> Duration {
        self.pacing.overdue_after()
    }

    /// Marks the call of this slot as overdue. Another call may then be sent before this call ends.
    pub(super) fn overdue(&mut self) {
        if std::mem::replace(&mut self.is_on_time, false) {
            self.pacing.on_time.fetch_sub(1, Ordering::AcqRel);
            self.pacing.ended.notify_one();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.overdue();
        if self.is_by_caller {
            self.pacing.by_callers.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Converts `time` to whole microseconds, rounded down.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Adds one to `count` if `count` is below `limit`. Returns whether one was added.
fn add_below(count: &AtomicUsize, limit: usize) -> bool {
    let more = |now: usize| (now < limit).then_some(now + 1);
    count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const OVERDUE_AFTER: Duration = Duration::from_millis(1);

    fn pacing(round_trip: Duration) -> Arc<Pacing> {
        let pacing = Arc::new(Pacing::new(OVERDUE_AFTER));
        pacing.observe(round_trip);
        pacing
    }

    #[test]
    fn a_near_server_has_one_call_at_a_time_and_a_distant_one_several() {
        assert_eq!(Pacing::new(OVERDUE_AFTER).allowed(), 1);
        for (micros, allowed) in [(1, 1), (200, 1), (500, 2), (1_000, 4), (7_300, 8), (90_000, 8)] {
            assert_eq!(pacing(Duration::from_micros(micros)).allowed(), allowed, "{micros}");
        }
    }

    #[test]
    fn no_call_waits_while_fewer_than_allowed_are_in_flight() {
        let pacing = pacing(Duration::from_micros(7_300));
        let slots: Vec<_> = (0..AT_ONCE).map(|_| pacing.try_begin()).collect();
        assert!(slots.iter().all(Option::is_some));
    }

    /// Calls beyond [`AT_ONCE`] are not sent all at once. Otherwise the next job would wait for a
    /// whole round trip.
    #[tokio::test]
    async fn further_calls_are_spread_over_the_round_trip() {
        let pacing = pacing(Duration::from_millis(400));
        let slots: Vec<_> = (0..AT_ONCE).map(|_| pacing.try_begin()).collect();
        let (started, mut further) = (Instant::now(), Vec::new());
        for number in 1..=2 {
            further.push(pacing.begin().await);
            assert!(started.elapsed() >= Duration::from_millis(49) * number);
        }
        assert!(slots.iter().all(Option::is_some));
        assert!(further.iter().all(|slot| slot.is_on_time), "no call has ended");
    }

    #[test]
    fn an_overdue_call_makes_room_and_callers_send_a_bounded_number() {
        let pacing = Arc::new(Pacing::new(Duration::from_secs(60)));
        let mut overdue = Vec::new();
        for _ in 0..CALLS_IN_FLIGHT {
            let mut slot = pacing.try_begin().expect("room for one on time");
            assert!(pacing.try_begin().is_none(), "one on time at once");
            slot.overdue();
            overdue.push(slot);
        }
        assert!(pacing.try_begin().is_none(), "callers that are not polled have all slots");
        overdue.pop();
        assert!(pacing.try_begin().is_some());
    }

    #[tokio::test]
    async fn the_driver_does_not_wait_for_a_call_that_nobody_polls() {
        let pacing = pacing(Duration::from_micros(200));
        let first = pacing.try_begin().expect("room for one on time");
        let second = pacing.begin().await;
        drop((first, second));
        assert!(pacing.try_begin().is_some());
    }

    #[tokio::test]
    async fn the_driver_waits_for_the_first_call_that_ends() {
        let pacing = Arc::new(Pacing::new(Duration::from_secs(60)));
        let first = pacing.begin().await;
        let waiting = tokio::spawn({
            let pacing = Arc::clone(&pacing);
            async move { pacing.begin().await.is_on_time }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.expect("a slot"), "woken by the end of the first");
    }

    #[test]
    fn the_round_trip_is_that_of_calls_that_did_not_wait() {
        let pacing = pacing(Duration::from_millis(2));
        pacing.observe(Duration::from_micros(300));
        assert_eq!(pacing.round_trip(), Some(Duration::from_micros(300)));
        pacing.observe(Duration::from_micros(940));
        assert_eq!(pacing.round_trip(), Some(Duration::from_micros(320)));
        for _ in 0..1_000 {
            pacing.observe(Duration::from_millis(7));
        }
        assert_eq!(pacing.allowed(), AT_ONCE, "it follows a network that became slower");
    }
}
