//! Requests that wait for a place in flight, in the order in which they came.
//!
//! Every node has lines of its own, one for each subject of a concurrency limit. Only the first of a
//! line asks the store: when a place is given back on its node, and every [`QUEUE_POLL`] for those
//! that other nodes gave back. So a line costs the store at most that, however long it is.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tollgate_core::policy::{PlannedCharge, Queue};
use tollgate_core::{
    Admission, Algorithm, Limit, Operation, Readings, Store, StoreError, Subject, Timestamp,
};

use super::Limiter;
use crate::receipt::Receipt;

/// How often the first of a line asks for places that other nodes gave back.
pub const QUEUE_POLL: Duration = Duration::from_millis(50);

/// Requests of one node that wait at a time, in all lines together.
pub const MAX_QUEUED: usize = 10_000;

/// What the store said at last, and when it was asked.
type Asked = (Timestamp, Result<Readings, StoreError>);

impl<S: Store> Limiter<S> {
    /// How many requests wait for a place on this node.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.lines.queued.load(Ordering::Relaxed)
    }

    /// Asks for all that is `planned`; where only places in flight are missing, in line and for no
    /// longer than `queue` says.
    pub(super) async fn ask_in_line(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation + Copy,
        queue: Queue,
    ) -> Asked {
        // Who waits needs a runtime's clock.
        if Handle::try_current().is_err() {
            return (now, self.query(now, planned, operation).await);
        }
        let until = Instant::now() + Duration::from_millis(queue.wait.get());
        let mut asked = None;
        let place = match self.lines.waited_for(planned) {
            // Nobody overtakes.
            Some(place) => place,
            None => {
                let readings = self.query(now, planned, operation).await;
                let Some(place) = missing_place(planned, &readings) else { return (now, readings) };
                asked = Some((now, readings));
                place
            }
        };
        match (self.lines.join(place, queue), asked) {
            (Some(waiting), _) => self.wait_in(&waiting, until, planned, operation).await,
            (None, Some(asked)) => asked,
            (None, None) => self.ask_beside(now, planned, operation).await,
        }
    }

    /// Waits for its turn, and then for a place. When its time is over it asks once more: whoever
    /// stood before it came earlier, and is gone.
    async fn wait_in(
        &self,
        waiting: &Waiting<'_>,
        until: Instant,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation,
    ) -> Asked {
        let Ok(_turn) = timeout_at(until, waiting.line.turn.lock()).await else {
            let now = self.now();
            return (now, self.query(now, planned, operation).await);
        };
        loop {
            let now = self.now();
            let readings = self.query(now, planned, &operation).await;
            if missing_place(planned, &readings).is_none() || Instant::now() >= until {
                return (now, readings);
            }
            let next = until.min(Instant::now() + QUEUE_POLL);
            let _ = timeout_at(next, waiting.line.freed.notified()).await;
        }
    }

    /// Asks past a line that is full. What is free belongs to those who wait, so that it is only
    /// looked at; if nothing is missing after all, nobody waits for it any more.
    async fn ask_beside(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation,
    ) -> Asked {
        let look = |planned: &PlannedCharge| Operation::Peek { cost: planned.cost };
        match self.query(now, planned, look).await {
            Ok(readings) if readings.all_admitted() => {
                (now, self.query(now, planned, operation).await)
            }
            refused => (now, refused),
        }
    }
}

/// The first place that is missing, if nothing else is.
fn missing_place<'p>(
    planned: &'p [PlannedCharge],
    readings: &Result<Readings, StoreError>,
) -> Option<&'p PlannedCharge> {
    let Ok(readings) = readings else { return None };
    let mut refused =
        planned.iter().zip(readings.iter()).filter(|(_, it)| it.admission != Admission::Now);
    let (first, _) = refused.next()?;
    let are_places = is_place(first) && refused.all(|(planned, _)| is_place(planned));
    are_places.then_some(first)
}

fn is_place(planned: &PlannedCharge) -> bool {
    matches!(planned.limit.algorithm(), Algorithm::Concurrency(_))
}

/// The lines of a node.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// In all of them, to be read without a lock.
    queued: AtomicUsize,
    by_place: Mutex<HashMap<Place, (Arc<Line>, usize)>>,
}

/// A limit's name, and whose places they are.
type Place = (Box<str>, Subject);

#[derive(Debug, Default)]
struct Line {
    /// Held by the first; the others get it in the order in which they asked for it.
    turn: tokio::sync::Mutex<()>,
    /// A place was given back.
    freed: Notify,
}

/// A request in a line, which it leaves when this is dropped.
struct Waiting<'l> {
    lines: &'l Lines,
    place: Place,
    line: Arc<Line>,
}

impl Lines {
    /// Tells the first of each line whose places `receipt` has given back.
    pub(super) fn freed(&self, receipt: &Receipt) {
        // Whoever joins after this asks the store after the place came back.
        if self.queued.load(Ordering::SeqCst) == 0 {
            return;
        }
        let lines = self.by_place.lock();
        for (limit, subject) in receipt.permits() {
            if let Some((line, _)) = lines.get(&place_of(limit, subject)) {
                line.freed.notify_one();
            }
        }
    }

    /// The first place of those `planned` that others wait for.
    fn waited_for<'p>(&self, planned: &'p [PlannedCharge]) -> Option<&'p PlannedCharge> {
        if self.queued.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let lines = self.by_place.lock();
        let is_waited_for = |planned: &&PlannedCharge| {
            is_place(planned) && lines.contains_key(&place_of(&planned.limit, &planned.subject))
        };
        planned.iter().find(is_waited_for)
    }

    /// Joins the line for what `planned` takes a place of; `None` if it is full.
    fn join(&self, planned: &PlannedCharge, queue: Queue) -> Option<Waiting<'_>> {
        let place = place_of(&planned.limit, &planned.subject);
        let mut lines = self.by_place.lock();
        if self.queued.load(Ordering::SeqCst) >= MAX_QUEUED {
            return None;
        }
        let (line, length) = lines.entry(place.clone()).or_default();
        if *length >= queue.length {
            return None;
        }
        *length += 1;
        self.queued.fetch_add(1, Ordering::SeqCst);
        Some(Waiting { lines: self, place, line: Arc::clone(line) })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut lines = self.lines.by_place.lock();
        self.lines.queued.fetch_sub(1, Ordering::SeqCst);
        if let Some((_, length)) = lines.get_mut(&self.place) {
            *length -= 1;
            if *length == 0 {
                lines.remove(&self.place);
            }
        }
    }
}

fn place_of(limit: &Limit, subject: &Subject) -> Place {
    (limit.name().into(), subject.clone())
}
