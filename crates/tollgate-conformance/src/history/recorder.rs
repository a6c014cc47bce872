//! Records the calls that many threads make.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_core::{Charge, Readings, Timestamp};

use super::call::{Call, History, Loss, Moment, NEVER, Outcome, RecordedCharge};

/// The calls that a recorder holds unless another number is set.
pub const DEFAULT_CALLS: usize = 1 << 20;

/// Records calls in real time, from any number of threads.
///
/// It holds a bounded number of calls. What comes after is counted, and the history is then unfit
/// to be judged.
#[derive(Debug)]
pub struct Recorder {
    max_calls: usize,
    /// The next moment. One counter for all: its order is real time's.
    moment: AtomicU64,
    history: Mutex<History>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(DEFAULT_CALLS)
    }
}

impl Recorder {
    /// An empty recorder of at most so many calls.
    #[must_use]
    pub fn new(max_calls: usize) -> Self {
        Self { max_calls, moment: AtomicU64::new(0), history: Mutex::default() }
    }

    /// Records that a call is made; to be asked before anything is sent.
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

    /// Records that the store loses its whole state, from now until what is returned is dropped:
    /// whoever kills or flushes it holds that meanwhile.
    #[must_use = "the loss ends when this is dropped"]
    pub fn begin_loss(&self) -> LossGuard<'_> {
        self.begin(losses)
    }

    /// Records that the store loses what it counts from now on until what is returned is dropped,
    /// as where a server takes over that has heard of a part of it.
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

    /// What was recorded so far. Calls without an answer yet have an unknown outcome.
    #[must_use]
    pub fn history(&self) -> History {
        self.lock().clone()
    }

    /// How many calls were made so far and recorded.
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

/// A call that is under way. Dropped, its outcome stays unknown, and it may still be carried out.
#[derive(Debug)]
pub struct Issued<'r> {
    recorder: &'r Recorder,
    index: Option<usize>,
}

impl Issued<'_> {
    /// Records the answer, or with any error that it is unknown what became of the call.
    pub fn answered<E>(self, told: &Result<Readings, E>) {
        self.ended(match told {
            Ok(readings) => Outcome::Answered(readings.clone()),
            Err(_) => Outcome::Unknown,
        });
    }

    /// Records what became of the call, where more is known of it than that there was an error.
    pub fn ended(self, outcome: Outcome) {
        // Taken before the lock: who waits for it has the answer already.
        let answered = self.recorder.tick();
        if let Some(index) = self.index {
            let call = &mut self.recorder.lock().calls[index];
            (call.answered, call.outcome) = (answered, outcome);
        }
    }
}

/// A store that loses its state, or the end of it.
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
