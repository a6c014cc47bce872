//! Assigns numbers to the replication epochs of a primary. A later epoch has a higher number.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tollgate_core::Millis;

use crate::connection::{LAG_MAX, Replication};

/// The number that was assigned last. All links of a process share this counter, so a number
/// identifies an epoch in the whole process.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Assigns numbers to the replication epochs of a link's servers. Each number is higher than all
/// earlier numbers.
///
/// A server that is promoted or restarted reports a new replication id. A server that is only
/// reconnected reports the same id. If a server does not report its id, each connection counts as a
/// new epoch.
#[derive(Debug, Default)]
pub(crate) struct EpochTracker {
    last: Mutex<Last>,
    number: AtomicU64,
    released: AtomicU64,
    is_held: AtomicBool,
    /// Whether the server refused a call and has executed no write since.
    is_refusing: AtomicBool,
}

/// The replication epoch of the last connection.
#[derive(Debug, Default)]
struct Last {
    /// The replication id that the connection's server reported. `None` if the server did not
    /// report the id.
    name: Option<Box<str>>,
    /// The start of the last outage: the time at which a connection was lost, or at which the server
    /// refused a call. A server that served for less than [`LAG_MAX`] does not end an outage. Such a
    /// server can be an old primary that returned for a moment, and a replica may lack all of its
    /// writes.
    left: Option<Instant>,
    /// The time since which the connected server serves calls, or `None` if no server does.
    serving: Option<Instant>,
    /// The time of the last refusal.
    refused: Option<Instant>,
    /// The start of the outage before the current epoch, or `None` if there was no outage.
    outage: Option<Instant>,
}

impl EpochTracker {
    /// Records that a server with the report `replication` was connected at `now`. Call this
    /// function before the connection is used.
    pub(crate) fn begin(&self, replication: Option<&Replication>, now: Instant) {
        let mut last = self.last.lock();
        let name = replication.map(|replication| replication.id.clone());
        // A server that does not report its id can be the same server as before.
        let is_other = name.is_some() && last.name != name;
        let is_new = is_other || name.is_none() || self.number() == 0;
        if is_other {
            self.is_refusing.store(false, Ordering::Relaxed);
        }
        // A server that refused calls serves again when it executes a write.
        if !self.is_refusing() {
            last.serving = Some(now);
        }
        if is_new {
            last.name = name;
            last.outage = last.left;
            self.number.store(LAST.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
    }

    /// Records that the connection was lost at `now`.
    pub(crate) fn leave(&self, now: Instant) {
        self.last.lock().end_service(now);
    }

    /// Records that the connected server refused a call at `now`, for example with `CLUSTERDOWN`. A
    /// server can refuse calls for long, and stay connected, before a replica is promoted.
    pub(crate) fn refuse(&self, now: Instant) {
        let mut last = self.last.lock();
        last.end_service(now);
        last.refused = Some(now);
        self.is_refusing.store(true, Ordering::Relaxed);
    }

    /// Returns whether the server refused a call and has executed no write since.
    pub(crate) fn is_refusing(&self) -> bool {
        self.is_refusing.load(Ordering::Relaxed)
    }

    /// Records that the connected server executed a write that was sent at `sent`, and replied at
    /// `now`. A write that was sent before the last refusal does not show that the server serves
    /// calls again.
    pub(crate) fn accept(&self, sent: Instant, now: Instant) {
        let mut last = self.last.lock();
        if self.is_refusing() && last.refused.is_none_or(|refused| refused < sent) {
            self.is_refusing.store(false, Ordering::Relaxed);
            last.serving = Some(now);
        }
    }

    /// Takes over the outage of `before`, the tracker of a link to the same data that this link
    /// replaces at `now`. If `before` was connected, the outage starts now. Call this function
    /// before the outage of this tracker is used.
    pub(crate) fn take_over(&self, before: &Self, now: Instant) {
        let (name, start, is_refusing) = {
            let last = before.last.lock();
            (last.name.clone(), last.outage_start(now), before.is_refusing())
        };
        let mut last = self.last.lock();
        let is_earlier = last.left.is_none_or(|left| start < left);
        if is_earlier {
            last.left = Some(start);
        }
        if self.number() == 0 {
            if is_earlier {
                last.name = name;
                self.is_refusing.store(is_refusing, Ordering::Relaxed);
            }
        } else if self.number() != self.released.load(Ordering::SeqCst) {
            last.outage = Some(last.outage.map_or(start, |outage| outage.min(start)));
        }
    }

    /// Returns the time at `now` since the start of the outage before the current epoch. The time
    /// until the failover replay counts too, because nothing is charged in this time.
    pub(crate) fn outage(&self, now: Instant) -> Millis {
        let start = self.last.lock().outage;
        let outage = start.map_or(Duration::ZERO, |start| now.saturating_duration_since(start));
        Millis::new(u64::try_from(outage.as_millis()).unwrap_or(u64::MAX))
    }

    /// Returns the number of the current epoch, or zero before the first epoch.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::SeqCst)
    }

    /// Returns whether charges are rejected now, because the current epoch has not been released.
    pub(crate) fn holds(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
            && self.number() != self.released.load(Ordering::SeqCst)
    }

    pub(crate) fn pause_until_replayed(&self) {
        self.is_held.store(true, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, epoch: u64) {
        self.released.fetch_max(epoch, Ordering::SeqCst);
    }
}

impl Last {
    /// Returns the start of the outage if no server serves calls from `now` on.
    fn outage_start(&self, now: Instant) -> Instant {
        let is_short = |since: Instant| now.saturating_duration_since(since) < LAG_MAX;
        match self.left {
            Some(left) if self.serving.is_none_or(is_short) => left,
            _ => now,
        }
    }

    /// Records that the server served no calls from `now` on.
    fn end_service(&mut self, now: Instant) {
        self.left = Some(self.outage_start(now));
        self.serving = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connects a server with the replication id `name` at `now`. Returns the outage before.
    fn begin_at(numbers: &EpochTracker, now: Instant, name: &str) -> Millis {
        numbers.begin(Some(&Replication::leading(name, 7, None)), now);
        numbers.outage(now)
    }

    #[test]
    fn an_epoch_goes_on_over_connections_and_ends_with_a_promotion() {
        let [numbers, others] = [(); 2].map(|()| EpochTracker::default());
        assert_eq!(numbers.number(), 0);
        let begun = |replication: Option<&str>| {
            let replication = replication.map(|name| Replication::leading(name, 7, None));
            numbers.begin(replication.as_ref(), Instant::now());
            numbers.number()
        };
        let first = begun(Some("x"));
        assert!(first > 0);
        assert_eq!(begun(Some("x")), first);
        others.begin(Some(&Replication::leading("x", 7, None)), Instant::now());
        assert_ne!(others.number(), first, "another link's");
        let later = [begun(Some("y")), begun(None), begun(None), begun(Some("y"))];
        assert!(first < later[0] && later.is_sorted_by(|one, next| one < next), "{later:?}");
    }

    #[test]
    fn what_is_held_waits_for_the_last_epoch() {
        let numbers = EpochTracker::default();
        let begin = |name| {
            numbers.begin(Some(&Replication::leading(name, 7, None)), Instant::now());
            numbers.number()
        };
        let first = begin("x");
        assert!(!numbers.holds(), "nobody asked for it");
        numbers.pause_until_replayed();
        assert!(numbers.holds());
        numbers.release(first);
        assert!(!numbers.holds());
        let second = begin("y");
        numbers.release(first);
        assert!(numbers.holds());
        numbers.release(second);
        assert!(!numbers.holds());
    }

    #[test]
    fn an_outage_is_what_lies_between_two_epochs() {
        let (numbers, start) = (EpochTracker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let begun = |name, seconds| begin_at(&numbers, at(seconds), name);
        assert_eq!(begun("x", 1), Millis::ZERO);
        numbers.leave(at(2));
        assert_eq!(begun("x", 40), Millis::ZERO, "the same epoch");
        numbers.leave(at(50));
        assert_eq!(begun("y", 70), Millis::from_secs(20));
    }

    #[test]
    fn an_old_primary_that_returned_for_a_moment_ended_the_outage() {
        let (numbers, start) = (EpochTracker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let begun = |name, seconds| begin_at(&numbers, at(seconds), name);
        begun("x", 1);
        numbers.leave(at(20));
        begun("x", 24);
        numbers.leave(at(25));
        assert_eq!(begun("y", 30), Millis::from_secs(10));
        // A connection of three seconds ends the outage: replicas have received its writes.
        numbers.leave(at(33));
        assert_eq!(begun("z", 34), Millis::from_secs(1));
    }

    #[test]
    fn a_primary_that_refused_calls_before_the_failover_ended_its_service_then() {
        let (numbers, start) = (EpochTracker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let begun = |name, seconds| begin_at(&numbers, at(seconds), name);
        begun("x", 1);
        numbers.refuse(at(20));
        numbers.refuse(at(24));
        numbers.leave(at(25));
        // Another connection to a server that refuses calls does not end the outage, however long
        // it lasts.
        begun("x", 26);
        numbers.leave(at(36));
        assert_eq!(begun("y", 40), Millis::from_secs(20));
        numbers.leave(at(50));
        assert_eq!(begun("z", 51), Millis::from_secs(1), "the new primary served");
    }

    #[test]
    fn a_primary_that_executes_calls_again_serves() {
        let numbers = EpochTracker::default();
        let replication = |name| Replication::leading(name, 7, None);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        numbers.begin(Some(&replication("x")), start);
        numbers.refuse(at(9));
        numbers.accept(at(10), at(11));
        numbers.leave(at(20));
        let promoted = at(22);
        numbers.begin(Some(&replication("y")), promoted);
        assert_eq!(numbers.outage(promoted), Millis::from_secs(2));
        // Until the replay, the time counts too.
        assert_eq!(numbers.outage(promoted + Duration::from_secs(1)), Millis::from_secs(3));
    }

    /// The defect: any reply ended an outage, also the reply to a call from before the refusal.
    #[test]
    fn a_write_from_before_the_refusal_does_not_end_the_outage() {
        let (numbers, start) = (EpochTracker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let replication = |name| Replication::leading(name, 7, None);
        numbers.begin(Some(&replication("x")), start);
        numbers.refuse(at(10));
        numbers.accept(at(9), at(11));
        numbers.accept(at(10), at(11));
        assert!(numbers.is_refusing());
        numbers.leave(at(15));
        numbers.begin(Some(&replication("y")), at(16));
        assert_eq!(numbers.outage(at(16)), Millis::from_secs(6));
    }

    /// The defect: each connection to a server without an id counted as a server that serves calls.
    #[test]
    fn another_connection_to_a_server_without_an_id_does_not_end_the_outage() {
        let (numbers, start) = (EpochTracker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let begun = |seconds| {
            numbers.begin(None, at(seconds));
            numbers.outage(at(seconds))
        };
        begun(1);
        numbers.refuse(at(20));
        numbers.leave(at(20));
        assert_eq!(begun(21), Millis::from_secs(1));
        numbers.refuse(at(25));
        numbers.leave(at(25));
        assert_eq!(begun(26), Millis::from_secs(6));
        // A write ends the outage.
        numbers.accept(at(27), at(27));
        numbers.refuse(at(30));
        numbers.leave(at(30));
        assert_eq!(begun(31), Millis::from_secs(1));
    }

    /// Returns the tracker that takes over the outages of `before` at `now`.
    fn successor(before: &[&EpochTracker], now: Instant) -> EpochTracker {
        let numbers = EpochTracker::default();
        before.iter().for_each(|before| numbers.take_over(before, now));
        numbers
    }

    #[test]
    fn a_new_link_takes_over_the_earliest_outage() {
        let [lost, used] = [(); 2].map(|()| EpochTracker::default());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let x = Replication::leading("x", 7, None);
        for numbers in [&lost, &used] {
            numbers.begin(Some(&x), start);
        }
        lost.leave(at(20));
        for (before, seconds) in [
            (vec![&lost], 15),
            (vec![&used], 10),
            (vec![&lost, &used], 15),
            (vec![&used, &lost], 15),
        ] {
            let numbers = successor(&before, at(25));
            numbers.begin(Some(&Replication::leading("y", 7, None)), at(35));
            assert_eq!(numbers.outage(at(35)), Millis::from_secs(seconds));
        }
    }

    #[test]
    fn a_new_link_to_a_server_that_refuses_calls_does_not_end_the_outage() {
        let (numbers, start) = (EpochTracker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let x = Replication::leading("x", 7, None);
        numbers.begin(Some(&x), start);
        numbers.refuse(at(20));
        let numbers = successor(&[&numbers], at(25));
        numbers.begin(Some(&x), at(26));
        assert_ne!(numbers.number(), 0);
        numbers.leave(at(36));
        numbers.begin(Some(&Replication::leading("y", 7, None)), at(40));
        assert_eq!(numbers.outage(at(40)), Millis::from_secs(20));
    }
}
