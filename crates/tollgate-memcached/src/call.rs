//! One store call. The charges of a call are all or nothing, although the items are changed one
//! after the other.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Admission, Reading, Readings, Timestamp};

use crate::error::MemcachedError;
use crate::job::{Decision, Job};
use crate::steps::{ReadState, StepOutcome, Steps};

/// The longest time that refunds may take after a call that could not be completed.
///
/// The refunds continue even if the caller's deadline passes before. The caller does not wait
/// longer than until its deadline.
const UNDO_WITHIN: Duration = Duration::from_millis(250);

/// Executes `jobs` at `now`.
///
/// Reads all items first and evaluates the charges on the values that were read. If all charges
/// fit, changes the items in the order of their names, each by compare-and-swap. If another node
/// changed an item first, reads that item again and evaluates its charge again. If this charge no
/// longer fits, refunds the charges that this call made before.
pub(crate) async fn execute(
    steps: &Steps,
    jobs: &[Job],
    now: Timestamp,
    deadline: Instant,
) -> Result<Readings, MemcachedError> {
    let seen = steps.read(jobs, deadline).await?;
    let admission = jobs.iter().zip(&seen).all(|(job, seen)| job.fits(&seen.view, now));
    let mut call = Call {
        steps,
        jobs,
        now,
        deadline,
        decision: if admission { Decision::Admitted } else { Decision::Refused },
        readings: vec![None; jobs.len()],
        charged: vec![false; jobs.len()],
    };
    let mut seen: Vec<_> = seen.into_iter().map(Some).collect();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|index| jobs[*index].names.first());
    for index in order {
        let Some(seen) = seen[index].take() else { continue };
        if let Err(error) = call.settle(index, seen).await {
            call.refund_charged(Counted::Refund).await;
            return Err(error);
        }
    }
    Ok(call.readings.into_iter().map(Option::unwrap_or_default).collect())
}

struct Call<'c> {
    steps: &'c Steps,
    jobs: &'c [Job],
    now: Timestamp,
    deadline: Instant,
    decision: Decision,
    /// The readings of the jobs. `None` for a job that is not done yet.
    readings: Vec<Option<Reading>>,
    /// Whether each job charged units that are not refunded yet.
    charged: Vec<bool>,
}

/// Whether a call that was not admitted keeps its charges on limits that count refused requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// The call was refused. The charges stay, because the limits count refused requests.
    Keep,
    /// The call has no answer, so no refusal is counted and the charges are refunded.
    Refund,
}

impl Call<'_> {
    async fn settle(&mut self, index: usize, seen: ReadState) -> Result<(), MemcachedError> {
        let (steps, job) = (self.steps, &self.jobs[index]);
        let is_guarded = job.guard(self.now).is_some();
        let reading = if is_guarded && !steps.remember(job, self.now, self.deadline).await? {
            job.peek(&seen.view, self.now)
        } else {
            let done = self.settle_once(index, seen).await;
            if is_guarded && done.as_ref().is_err_and(MemcachedError::proves_nothing_changed) {
                steps.forget(job, self.now, Instant::now() + UNDO_WITHIN).await;
            }
            done?
        };
        self.readings[index] = Some(reading);
        Ok(())
    }

    async fn settle_once(
        &mut self,
        index: usize,
        seen: ReadState,
    ) -> Result<Reading, MemcachedError> {
        if self.decision == Decision::Refused {
            return self.refuse(index, seen).await;
        }
        let job = &self.jobs[index];
        match self.steps.settle(job, seen, self.decision, self.now, self.deadline).await? {
            StepOutcome::Done(reading) => {
                self.charged[index] = true;
                Ok(reading)
            }
            StepOutcome::NoRoom(seen) => {
                self.decision = Decision::Refused;
                self.refund_charged(Counted::Keep).await;
                self.refuse(index, seen).await
            }
        }
    }

    /// Executes one job of a refused call.
    ///
    /// A charge that did not fit keeps its first reading, even if units have become free since that
    /// reading. The first readings show the caller that the call was refused.
    async fn refuse(&mut self, index: usize, seen: ReadState) -> Result<Reading, MemcachedError> {
        let job = &self.jobs[index];
        let (at_first, _) = job.decide(&seen.view, Decision::Refused, self.now);
        let had_room = job.fits(&seen.view, self.now);
        let settled =
            self.steps.settle(job, seen, Decision::Refused, self.now, self.deadline).await?;
        self.charged[index] = job.counts_refusals();
        match settled {
            StepOutcome::Done(reading) if had_room || reading.admission != Admission::Now => {
                Ok(reading)
            }
            _ => Ok(at_first),
        }
    }

    /// Refunds the charges that this call has made so far, each at most once, and updates their
    /// readings. `counted` states whether charges on limits that count refused requests stay.
    async fn refund_charged(&mut self, counted: Counted) {
        let deadline = Instant::now() + UNDO_WITHIN;
        for ((job, slot), charged) in
            self.jobs.iter().zip(&mut self.readings).zip(&mut self.charged)
        {
            let Some(reading) = slot.as_mut().filter(|_| *charged) else { continue };
            if job.counts_refusals() && counted == Counted::Keep {
                continue;
            }
            // The flag is cleared before the refund, whatever the result of the refund. A second
            // refund would return units that other requests were charged for.
            *charged = false;
            let Some(undo) = job.undone(reading) else { continue };
            match undone(self.steps, &undo, self.now, deadline).await {
                Ok(seen) => *reading = job.peek(&seen.view, self.now),
                Err(_) => {
                    self.steps.counters.unrefunded.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Executes the refund `undo`, and returns the state of the items after the refund.
async fn undone(
    steps: &Steps,
    undo: &Job,
    now: Timestamp,
    deadline: Instant,
) -> Result<ReadState, MemcachedError> {
    let seen = steps.read_one(undo, deadline).await?;
    steps.settle(undo, seen, Decision::Admitted, now, deadline).await?;
    steps.read_one(undo, deadline).await
}
