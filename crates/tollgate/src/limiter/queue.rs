//! Queues of requests that wait for a free slot of a concurrency limit, in the order of their
//! arrival.
//!
//! Every node has its own queues, one for each subject of a concurrency limit. A request that joins a
//! queue peeks once, because a request that another limit refuses must not wait. A replica that
//! lags may answer the peek. If another limit refuses, a second call therefore charges the limits
//! other than concurrency limits, and the primary answers this call. After that, only the first
//! request of a queue queries the store: when a request on the same node frees a slot, and every
//! [`QUEUE_POLL`] to find slots that other nodes freed. The load on the store therefore does not
//! depend on the length of the queue.
//!
//! Limits with [`Refusals::Counted`] count a request when it is admitted or finally refused. A
//! request on such a limit peeks before each charge. A charge can still lack a slot that the peek
//! before the charge found, because another request took the slot in between, or because a replica
//! that lags answered the peek. The store counts each such charge of a request as one more refusal.

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
    Admission, Charge, Operation, Readings, Refusals, Store, StoreError, Timestamp,
};

use super::Limiter;
use super::counter_key::{CounterKey, counter_key};
use crate::receipt::{Receipt, has_permits};

/// The interval at which the first request of a queue queries the store for slots that other nodes
/// freed.
pub const QUEUE_POLL: Duration = Duration::from_millis(50);

/// The most requests that wait on one node at a time, in all queues together.
pub const MAX_QUEUED: usize = 10_000;

/// A store call for the charges of a request, and the store's answer.
pub(super) struct Answered {
    /// The time at which the call was made.
    pub(super) at: Timestamp,
    pub(super) call: Call,
    pub(super) readings: Result<Readings, StoreError>,
}

/// The kind of a store call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// The call makes all charges of the request, or none.
    Charge,
    /// The call only peeks.
    Peek,
}

impl<S: Store> Limiter<S> {
    /// Returns the number of requests that wait for a slot on this node.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queues.queued.load(Ordering::Relaxed)
    }

    /// Sends all of `planned` to the store. If the store refuses only because no slot is free, the
    /// request waits in a queue, at most for the time that `queue` allows. The answer of a peek is
    /// never an admission.
    pub(super) async fn apply_queued(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation + Copy,
        queue: Queue,
    ) -> Answered {
        // Waiting needs the timer of a runtime, so without a runtime the request does not wait.
        if Handle::try_current().is_err() {
            return self.charge(now, planned, operation).await;
        }
        let answered = self.charge_or_wait(now, planned, operation, queue).await;
        match answered.call {
            Call::Charge => answered,
            Call::Peek => self.count_refusal(planned, operation, answered).await,
        }
    }

    async fn charge_or_wait(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation + Copy,
        queue: Queue,
    ) -> Answered {
        let until = Instant::now() + Duration::from_millis(queue.wait.get());
        let (slot, answered) = match self.queues.waited_for(planned) {
            // Other requests wait for this slot already, so this request joins their queue, unless
            // another limit refuses the request.
            Some(slot) => {
                let answered = self.peek_for_slot(now, planned, operation).await;
                if !answered.is_admitted() && missing_slot(planned, &answered).is_none() {
                    return answered;
                }
                (slot, answered)
            }
            None => {
                let answered = self.attempt(now, planned, operation).await;
                let Some(slot) = missing_slot(planned, &answered) else { return answered };
                (slot, answered)
            }
        };
        match self.queues.join(slot, queue) {
            Some(ticket) => self.wait_for_slot(&ticket, until, planned, operation).await,
            // The queue is full, but the peek found every slot that the request needs. This charge
            // can take a slot that another node freed, before the first request of the queue finds
            // the slot at its next poll.
            None if answered.is_admitted() => self.charge(now, planned, operation).await,
            None => answered,
        }
    }

    /// Waits until the request is the first of the queue, and then until a slot is free. When the
    /// allowed waiting time ends, the request queries the store once more, even if other requests
    /// are before it in the queue.
    async fn wait_for_slot(
        &self,
        ticket: &Ticket<'_>,
        until: Instant,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation + Copy,
    ) -> Answered {
        let turn = timeout_at(until, ticket.queue.turn.lock()).await;
        while turn.is_ok() && Instant::now() < until {
            self.charge_unpaid_since(planned).await;
            let answered = self.attempt(self.now(), planned, operation).await;
            if missing_slot(planned, &answered).is_none() {
                return answered;
            }
            let next = until.min(Instant::now() + QUEUE_POLL);
            let _ = timeout_at(next, ticket.queue.freed.notified()).await;
        }
        // The last query is a charge, so the limits count the request even if they refuse it.
        self.charge_unpaid_since(planned).await;
        self.charge(self.now(), planned, operation).await
    }

    /// Charges the unpaid costs that have arisen since the request joined the queue, for example of
    /// the request that freed the slot.
    async fn charge_unpaid_since(&self, planned: &[PlannedCharge]) {
        if !self.unpaid.is_empty() {
            Box::pin(self.charge_unpaid(self.now(), planned)).await;
        }
    }

    /// Charges `planned`. If a limit counts refusals, peeks first, and does not charge if the peek
    /// finds no slot. The store therefore does not count the attempts of a waiting request as
    /// refusals.
    async fn attempt(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation + Copy,
    ) -> Answered {
        if planned.iter().any(counts_refusals) {
            let answered = self.peek_for_slot(now, planned, operation).await;
            if !answered.is_admitted() {
                return answered;
            }
        }
        self.charge(now, planned, operation).await
    }

    /// Peeks at `planned`. If a limit other than a concurrency limit refuses, queries the primary,
    /// because a replica that lags may have answered the peek. The result is a refusal of the
    /// primary, which counts as one on limits that count refusals, or the answer of a peek.
    async fn peek_for_slot(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation + Copy,
    ) -> Answered {
        let answered = self.peek_at_charges(now, planned).await;
        match &answered.readings {
            Ok(readings) if prevents_charges(planned, readings, operation) => {
                self.charge_without_slots(now, planned, operation).await
            }
            _ => answered,
        }
    }

    /// Charges the limits of `planned` other than concurrency limits, at which the call only peeks.
    /// A slot that was freed therefore stays free for the first request of the queue. If the store
    /// makes the charges, this function undoes them and returns the answer as that of a peek.
    async fn charge_without_slots(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation + Copy,
    ) -> Answered {
        let without_slot = |planned: &PlannedCharge| match is_slot(planned) {
            true => Operation::Peek { cost: planned.cost },
            false => operation(planned),
        };
        let readings = self.apply(now, planned, without_slot).await;
        let made = match &readings {
            Ok(made) if !prevents_charges(planned, made, operation) => made,
            _ => return Answered { at: now, call: Call::Charge, readings },
        };
        let charges = planned.iter().zip(made.iter());
        let refunds: Vec<Charge<'_>> = charges
            .filter_map(|(planned, made)| {
                let operation = without_slot(planned).inverse(made.position)?;
                Some(Charge { limit: &planned.limit, subject: &planned.subject, operation })
            })
            .collect();
        if !refunds.is_empty() {
            // If the store does not answer, the charges remain until their windows end.
            let answer = self.store.apply(now, &refunds).await;
            self.notify_holds(&refunds, &answer);
        }
        Answered { at: now, call: Call::Peek, readings }
    }

    /// Charges the limits of `planned` that count refusals, and only these limits, for a request
    /// that the peek `refused` refuses finally. The call takes no slot. Returns `refused` with the
    /// readings of the charged limits.
    async fn count_refusal(
        &self,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation,
        mut refused: Answered,
    ) -> Answered {
        let Ok(readings) = &mut refused.readings else { return refused };
        let counting: Vec<_> = planned.iter().filter(|it| counts_refusals(it)).cloned().collect();
        // A reservation would reserve units for a request that does not run, so the units are
        // charged.
        let charge = |planned: &PlannedCharge| match operation(planned) {
            Operation::Reserve { cost, id, .. } => Operation::Charge { cost, id },
            other => other,
        };
        if let Ok(counted) = self.apply(refused.at, &counting, charge).await {
            let both = planned.iter().zip(readings.iter_mut());
            let peeked = both.filter_map(|(it, peeked)| counts_refusals(it).then_some(peeked));
            peeked.zip(counted.iter()).for_each(|(peeked, counted)| *peeked = *counted);
        }
        refused
    }

    async fn charge(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation,
    ) -> Answered {
        let readings = self.apply(now, planned, operation).await;
        Answered { at: now, call: Call::Charge, readings }
    }

    async fn peek_at_charges(&self, now: Timestamp, planned: &[PlannedCharge]) -> Answered {
        let peek = |planned: &PlannedCharge| Operation::Peek { cost: planned.cost };
        let readings = self.apply(now, planned, peek).await;
        Answered { at: now, call: Call::Peek, readings }
    }
}

impl Answered {
    /// Returns whether every limit admits the request.
    fn is_admitted(&self) -> bool {
        self.readings.as_ref().is_ok_and(Readings::all_admitted)
    }
}

fn counts_refusals(planned: &PlannedCharge) -> bool {
    planned.limit.refusals() == Refusals::Counted
}

/// Returns whether the charges of `planned` would be refused even if every slot were free,
/// according to `readings`. A limit at which `operation` only peeks prevents no charge.
fn prevents_charges(
    planned: &[PlannedCharge],
    readings: &Readings,
    operation: impl Fn(&PlannedCharge) -> Operation,
) -> bool {
    planned.iter().zip(readings.iter()).any(|(planned, reading)| {
        reading.admission != Admission::Now
            && !is_slot(planned)
            && !matches!(operation(planned), Operation::Peek { .. })
    })
}

/// Returns the first charge that lacks a free slot of a concurrency limit. Returns `None` if the
/// store admitted the call or did not answer, or if a limit of another algorithm also refused the
/// call.
fn missing_slot<'p>(
    planned: &'p [PlannedCharge],
    answered: &Answered,
) -> Option<&'p PlannedCharge> {
    let Ok(readings) = &answered.readings else { return None };
    let mut refused =
        planned.iter().zip(readings.iter()).filter(|(_, it)| it.admission != Admission::Now);
    let (first, _) = refused.next()?;
    let are_slots = is_slot(first) && refused.all(|(planned, _)| is_slot(planned));
    are_slots.then_some(first)
}

fn is_slot(planned: &PlannedCharge) -> bool {
    has_permits(&planned.limit)
}

/// The queues of one node.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// The number of requests in all queues, which can be read without a lock.
    queued: AtomicUsize,
    /// The queue for the slots of each counter, and the length of the queue.
    by_key: Mutex<HashMap<CounterKey, (Arc<SlotQueue>, usize)>>,
}

#[derive(Debug, Default)]
struct SlotQueue {
    /// The first request of the queue holds this lock. The other requests acquire it in the order
    /// of their arrival.
    turn: tokio::sync::Mutex<()>,
    /// Notified when a slot is freed on this node.
    freed: Notify,
}

/// A request in a queue. The request leaves the queue when this value is dropped.
struct Ticket<'l> {
    queues: &'l Queues,
    key: CounterKey,
    queue: Arc<SlotQueue>,
}

impl Queues {
    /// Notifies the first request of each queue that waits for one of the permits in `receipt`.
    /// These permits were just released.
    pub(super) fn slots_freed(&self, receipt: &Receipt) {
        // A request that joins a queue after this line queries the store after the slot was freed.
        if self.queued.load(Ordering::SeqCst) == 0 {
            return;
        }
        let queues = self.by_key.lock();
        for (limit, subject) in receipt.permits() {
            if let Some((queue, _)) = queues.get(&counter_key(limit, subject)) {
                queue.freed.notify_one();
            }
        }
    }

    /// Returns the first charge of `planned` that needs a slot for which other requests already
    /// wait in a queue, or `None` if there is no such charge.
    fn waited_for<'p>(&self, planned: &'p [PlannedCharge]) -> Option<&'p PlannedCharge> {
        if self.queued.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let queues = self.by_key.lock();
        let is_waited_for = |planned: &&PlannedCharge| {
            is_slot(planned) && queues.contains_key(&counter_key(&planned.limit, &planned.subject))
        };
        planned.iter().find(is_waited_for)
    }

    /// Joins the queue for a slot of `planned`. Returns `None` if this queue is full, or if all
    /// queues of the node together are full. `queue` has the settings of the rule.
    fn join(&self, planned: &PlannedCharge, queue: Queue) -> Option<Ticket<'_>> {
        let key = counter_key(&planned.limit, &planned.subject);
        let mut queues = self.by_key.lock();
        if self.queued.load(Ordering::SeqCst) >= MAX_QUEUED {
            return None;
        }
        let (slots, length) = queues.entry(key.clone()).or_default();
        if *length >= queue.length {
            return None;
        }
        *length += 1;
        self.queued.fetch_add(1, Ordering::SeqCst);
        Some(Ticket { queues: self, key, queue: Arc::clone(slots) })
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut queues = self.queues.by_key.lock();
        self.queues.queued.fetch_sub(1, Ordering::SeqCst);
        if let Some((_, length)) = queues.get_mut(&self.key) {
            *length -= 1;
            if *length == 0 {
                queues.remove(&self.key);
            }
        }
    }
}
