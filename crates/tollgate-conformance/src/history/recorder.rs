//! A recorder for calls from many threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_core::{Charge, Readings, Timestamp};

use super::call::{Call, History, Loss, Moment, NEVER, Outcome, RecordedCharge};

/// The default of the most calls that a recorder stores.
pub const DEFAULT_CALLS: usize = 1 << 20;

/// A recorder of calls in real time, from any number of threads.
///
/// The recorder stores a bounded number of calls. Further calls are only counted, and such a
/// history cannot be checked.
#[derive(Debug)]
pub struct Recorder {
    max_calls: usize,
    /// The number of the next moment. All callers share this counter, so a later moment in real
    /// time has a larger number.
    moment: AtomicU64,
    history: Mutex<History>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(DEFAULT_CALLS)
    }
}

impl Recorder {
    /// Creates an empty recorder of at most `max_calls` calls.
    #[must_use]
    pub fn new(max_calls: usize) -> Self {
        Self { max_calls, moment: AtomicU64::new(0), history: Mutex::default() }
    }

    /// Records the start of a call to the store. Use this method before any data of the call is
    /// sent.
    #[must_use = "the answer is recorded with it"]
    pub fn issue(&self, now: Timestamp, charges: &[Charge<'_>]) -> Issued<'_> {
        let charges = charges.iter().map(RecordedCharge::from).collect();
        let mut history = self.lock();
        if history.calls.len() == self.max_calls {
            history.unrecorded += 1;
            return Issued { recorder: self, index: None };
        }
        let issued = self.tick();
        let outcome = Outcome::default();
        history.calls.push(Call { issued, answered: NEVER, now, charges, outcome });
        Issued { recorder: self, index: Some(history.calls.len() - 1) }
    }

    /// Records that the store loses its complete state, from now until the returned guard is
    /// dropped. Keep the guard while the store is killed or flushed.
    #[must_use = "the loss ends when this is dropped"]
    pub fn begin_loss(&self) -> LossGuard<'_> {
        self.begin(losses)
    }

    /// Records that the store can lose the charges that are made from now until the returned guard
    /// is dropped. A store loses charges when a replica is promoted that has received only some of
    /// the charges.
    #[must_use = "the cut ends when this is dropped"]
    pub fn begin_cut(&self) -> LossGuard<'_> {
        self.begin(cuts)
    }

    fn begin(&self, kind: fn(&mut History) -> &mut Vec<Loss>) -> LossGuard<'_> {
        let mut history = self.lock();
        let all = kind(&mut history);
        all.push(Loss { from: self.tick(), until: NEVER });
        let index = all.len() - 1;
        LossGuard { recorder: self, kind, index }
    }

    /// Returns the history so far. Calls without an answer have an unknown outcome.
    #[must_use]
    pub fn history(&self) -> History {
        self.lock().clone()
    }

    /// Removes the history so far from the recorder and returns the history. Later answers to calls
    /// of this history have no effect.
    #[must_use]
    pub fn take(&self) -> History {
        std::mem::take(&mut self.lock())
    }

    /// Returns the number of calls that were recorded so far.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.lock().calls.len()
    }

    fn tick(&self) -> Moment {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in progress. If this value is dropped, the outcome of the call stays unknown, and the
/// store may still execute the call.
#[derive(Debug)]
pub struct Issued<'r> {
    recorder: &'r Recorder,
    index: Option<usize>,
}

impl Issued<'_> {
    /// Records the answer. An error means that the outcome of the call is unknown.
    pub fn answered<E>(self, result: &Result<Readings, E>) {
        self.ended(match result {
            Ok(readings) => Outcome::Answered(readings.clone()),
            Err(_) => Outcome::Unknown,
        });
    }

    /// Records the outcome. Use this method instead of [`answered`](Self::answered) if the caller
    /// knows whether a call that returned an error was executed.
    pub fn ended(self, outcome: Outcome) {
        // The moment is taken before the lock, because a caller that waits for the lock has already
        // received the answer.
        let answered = self.recorder.tick();
        let mut history = self.recorder.lock();
        if let Some(call) = self.index.and_then(|index| history.calls.get_mut(index)) {
            (call.answered, call.outcome) = (answered, outcome);
        }
    }
}

/// A guard for a period in which the store loses state.
#[derive(Debug)]
pub struct LossGuard<'r> {
    recorder: &'r Recorder,
    kind: fn(&mut History) -> &mut Vec<Loss>,
    index: usize,
}

impl Drop for LossGuard<'_> {
    fn drop(&mut self) {
        let until = self.recorder.tick();
        (self.kind)(&mut self.recorder.lock())[self.index].until = until;
    }
}

const fn losses(history: &mut History) -> &mut Vec<Loss> {
    &mut history.losses
}

const fn cuts(history: &mut History) -> &mut Vec<Loss> {
    &mut history.cuts
}
