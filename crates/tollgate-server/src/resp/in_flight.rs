//! Commands whose decisions are in flight.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use smallvec::SmallVec;
use tollgate::model::policy::PlannedCharge;

use tollgate::observe::Histogram;

/// The most commands of one connection that are decided concurrently.
pub const MAX_IN_FLIGHT: usize = 64;

/// Hashes of the keys that a command charges. A collision only makes a command wait for another
/// command of the same connection. An attacker could therefore only delay itself, so a weak hash is
/// enough.
pub(super) type ChargedKeys = SmallVec<[u64; 1]>;

/// Returns the hashes of the keys that `planned` charges.
pub(super) fn charged(planned: &[PlannedCharge]) -> ChargedKeys {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(MULTIPLIER).rotate_left(31);
    let hash = |planned: &PlannedCharge| {
        let (args, rest) = planned.subject.as_bytes().as_chunks::<8>();
        let start = planned.limit.name_digest() as u64;
        let hash = args.iter().fold(start, |hash, word| mix(hash, u64::from_le_bytes(*word)));
        rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
    };
    match planned {
        [one] => ChargedKeys::from_buf([hash(one)]),
        several => several.iter().map(hash).collect(),
    }
}

/// The decisions in flight, in the order of their commands. The replies are sent in the same order.
///
/// If the store answers at once, the reply is written at once. Decisions that wait for their store
/// are polled together, so they can travel in one batch. No two decisions in flight charge the same
/// key, because the store could execute them in another order than the order in which the client
/// sent the commands.
pub(super) struct InFlight<'l, F: Future, R> {
    latency: &'l Histogram,
    /// The first `taken` slots are in use. The other slots are kept for reuse, so a decision needs
    /// no allocation of its own.
    slots: Vec<Slot<F, R>>,
    taken: usize,
    /// The time at which the last decision ended, or `None` if the next command did not arrive
    /// together with it. The next decision begins at this time, so one reading of the clock serves
    /// as the end of one decision and the beginning of the next.
    ended: Option<Instant>,
}

struct Slot<F: Future, R> {
    waiting: Pin<Box<Option<F>>>,
    began: Instant,
    answer: Option<F::Output>,
    charged: ChargedKeys,
    /// The form in which the reply is written. `None` while the slot is free.
    reply: Option<R>,
}

impl<'l, F: Future, R> InFlight<'l, F, R> {
    /// Creates an empty list. The durations of decisions are recorded in `latency`.
    pub(super) const fn new(latency: &'l Histogram) -> Self {
        Self { latency, slots: Vec::new(), taken: 0, ended: None }
    }

    /// Makes the next decision read the clock when it begins. Call this if time may have passed
    /// since the last decision.
    pub(super) const fn read_clock_again(&mut self) {
        self.ended = None;
    }

    /// Returns whether no decision is in flight.
    pub(super) const fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// Returns whether a command that charges `charged` can be decided concurrently with the
    /// decisions in flight.
    pub(super) fn has_room(&self, charged: &ChargedKeys) -> bool {
        let slots = &self.slots[..self.taken];
        let is_free = |one: &u64| !slots.iter().any(|slot| slot.charged.contains(one));
        self.taken < MAX_IN_FLIGHT && charged.iter().all(is_free)
    }

    /// Starts `decision`, which charges the keys in `charged`. Its reply will have the form
    /// `reply`. The caller has checked that the list [has room](Self::has_room).
    ///
    /// The decision is moved into its slot by a function that is not `async`. The future of an
    /// `async` function would contain the decision and move it twice.
    #[inline]
    pub(super) fn begin(&mut self, decision: F, charged: ChargedKeys, reply: R) {
        if self.taken == self.slots.len() {
            self.slots.push(Slot::free());
        }
        let slot = &mut self.slots[self.taken];
        slot.waiting.set(Some(decision));
        let began = self.ended.unwrap_or_else(Instant::now);
        (slot.began, slot.charged, slot.reply) = (began, charged, Some(reply));
        self.taken += 1;
    }

    /// Executes `decide`, and records its duration if it returns a decision. Call this only while
    /// no decision is in flight.
    pub(super) fn measure<T>(&mut self, decide: impl FnOnce() -> Option<T>) -> Option<T> {
        debug_assert!(self.is_empty());
        let began = self.ended.unwrap_or_else(Instant::now);
        let decision = decide()?;
        let ended = Instant::now();
        self.latency.observe(ended.saturating_duration_since(began));
        self.ended = Some(ended);
        Some(decision)
    }

    /// Records the duration of a decision that began at `began` and was made outside of this list.
    pub(super) fn record(&self, began: Instant) {
        self.latency.observe(began.elapsed());
    }

    /// Polls the decision that was started last. If its result is ready and no other decision is in
    /// flight, passes the result to `answered`. Otherwise [`finish`](Self::finish) passes the
    /// result on.
    pub(super) async fn at_once(&mut self, answered: impl FnOnce(F::Output, R)) {
        let Some(slot) = self.slots[..self.taken].last_mut() else { return };
        let (is_alone, latency) = (self.taken == 1, self.latency);
        let is_answered = poll_fn(|cx| {
            if !is_alone {
                slot.poll(cx, latency);
                return Poll::Ready(None);
            }
            // The result is large, and most results take this path, so the result is passed on
            // without being stored.
            let waiting = slot.waiting.as_mut().as_pin_mut();
            match waiting.map(|waiting| waiting.poll(cx)) {
                Some(Poll::Ready(answer)) => Poll::Ready(Some(answer)),
                _ => Poll::Ready(None),
            }
        });
        if let Some(answer) = is_answered.await {
            let ended = Instant::now();
            latency.observe(ended.saturating_duration_since(slot.began));
            self.ended = Some(ended);
            slot.waiting.set(None);
            self.taken = 0;
            if let Some(reply) = slot.reply.take() {
                answered(answer, reply);
            }
        }
    }

    /// Waits for all decisions and passes each result to `each` in the order of the commands.
    pub(super) async fn finish(&mut self, mut each: impl FnMut(F::Output, R)) {
        let latency = self.latency;
        self.ended = None;
        let slots = &mut self.slots[..std::mem::take(&mut self.taken)];
        poll_fn(|cx| {
            slots.iter_mut().for_each(|slot| slot.poll(cx, latency));
            let is_done = slots.iter().all(|slot| slot.answer.is_some());
            if is_done { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        for slot in slots {
            if let (Some(answer), Some(reply)) = (slot.answer.take(), slot.reply.take()) {
                each(answer, reply);
            }
        }
    }
}

impl<F: Future, R> Slot<F, R> {
    fn free() -> Self {
        let (waiting, began) = (Box::pin(None), Instant::now());
        Self { waiting, began, answer: None, charged: ChargedKeys::new(), reply: None }
    }

    /// Polls the decision. When its result is ready, stores the result and drops the future.
    fn poll(&mut self, cx: &mut Context<'_>, latency: &Histogram) {
        let Some(waiting) = self.waiting.as_mut().as_pin_mut() else { return };
        if let Poll::Ready(answer) = waiting.poll(cx) {
            latency.observe(self.began.elapsed());
            self.answer = Some(answer);
            self.waiting.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    type Answer = Result<u32, oneshot::error::RecvError>;

    fn slow() -> (oneshot::Sender<u32>, oneshot::Receiver<u32>) {
        oneshot::channel()
    }

    #[tokio::test]
    async fn what_is_answered_at_once_waits_only_for_those_before_it() {
        let latency = Histogram::default();
        let mut in_flight = InFlight::new(&latency);
        let (now, receiver) = slow();
        now.send(1).unwrap();
        in_flight.begin(receiver, ChargedKeys::new(), "first");
        let mut message = None;
        in_flight.at_once(|answer, reply| message = Some((answer, reply))).await;
        assert_eq!(message, Some((Ok(1), "first")));
        assert!(in_flight.is_empty());

        let (later, receiver) = slow();
        in_flight.begin(receiver, ChargedKeys::new(), "second");
        in_flight.at_once(|_, _| panic!("nobody answers yet")).await;
        let (now, receiver) = slow();
        now.send(3).unwrap();
        in_flight.begin(receiver, ChargedKeys::new(), "third");
        in_flight.at_once(|_, _| panic!("nobody answers yet")).await;
        later.send(2).unwrap();
        let mut answers: Vec<(Answer, &str)> = Vec::new();
        in_flight.finish(|answer, reply| answers.push((answer, reply))).await;
        assert_eq!(answers, [(Ok(2), "second"), (Ok(3), "third")]);
        assert!(in_flight.is_empty());
        assert_eq!(latency.read().count(), 3);
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_and_for_one_of_each_key() {
        let latency = Histogram::default();
        let mut in_flight = InFlight::new(&latency);
        let mut senders = Vec::new();
        for key in 0..MAX_IN_FLIGHT as u64 {
            let charged: ChargedKeys = [key].into_iter().collect();
            assert!(in_flight.has_room(&charged));
            let (sender, receiver) = slow();
            in_flight.begin(receiver, charged.clone(), ());
            in_flight.at_once(|_, _| panic!("nobody answers yet")).await;
            assert!(!in_flight.has_room(&charged));
            senders.push(sender);
        }
        assert!(!in_flight.has_room(&ChargedKeys::from_elem(1_000, 1)));
        drop(senders);
        in_flight.finish(|answer, ()| assert!(answer.is_err())).await;
        assert!(in_flight.has_room(&ChargedKeys::from_elem(1, 1)));
        assert_eq!(in_flight.slots.len(), MAX_IN_FLIGHT);
    }
}
