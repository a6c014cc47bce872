//! Jobs that travel together, and who waits for them.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::LaneError;

/// A job with less time left than this is not sent: the shard's clock, which is known to two
/// milliseconds at best, would refuse it as late.
const TOO_LATE_TO_SEND: Duration = Duration::from_millis(2);

/// How often one job may be sent, the first time included. Its deadline usually comes sooner.
const MAX_SENDS: u8 = 8;

/// Who waits for a job, and until when.
#[derive(Debug)]
pub(super) struct Waiter<A> {
    answer: oneshot::Sender<Result<A, LaneError>>,
    deadline: Instant,
    sends: u8,
}

/// Jobs and, at the same places, their waiters.
#[derive(Debug)]
pub(super) struct Batch<J, A> {
    jobs: Vec<J>,
    waiters: Vec<Waiter<A>>,
}

impl<A> Waiter<A> {
    pub(super) fn new(answer: oneshot::Sender<Result<A, LaneError>>, deadline: Instant) -> Self {
        Self { answer, deadline, sends: 0 }
    }

    /// Whether somebody still waits, for long enough that sending is of use.
    fn waits(&self, now: Instant) -> bool {
        !self.answer.is_closed() && self.deadline.saturating_duration_since(now) > TOO_LATE_TO_SEND
    }

    /// Tells the answer; if nobody waits any more, it is lost on purpose.
    fn tell(self, answer: Result<A, LaneError>) {
        let _ = self.answer.send(answer);
    }
}

impl<J, A> Batch<J, A> {
    pub(super) fn new() -> Self {
        Self { jobs: Vec::new(), waiters: Vec::new() }
    }

    /// One job alone.
    pub(super) fn of(job: J, waiter: Waiter<A>) -> Self {
        Self { jobs: vec![job], waiters: vec![waiter] }
    }

    pub(super) fn push(&mut self, job: J, waiter: Waiter<A>) {
        self.jobs.push(job);
        self.waiters.push(waiter);
    }

    pub(super) fn jobs(&self) -> &[J] {
        &self.jobs
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The first of the deadlines: what runs later would run for somebody who has left.
    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.waiters.iter().map(|waiter| waiter.deadline).min()
    }

    /// The last of the deadlines: then nobody waits any more.
    pub(super) fn last_deadline(&self) -> Option<Instant> {
        self.waiters.iter().map(|waiter| waiter.deadline).max()
    }

    /// Drops the jobs that nobody waits for, and those that cannot be decided in time any more.
    /// None of them has been carried out.
    pub(super) fn drop_given_up(&mut self, now: Instant) {
        if self.waiters.iter().all(|waiter| waiter.waits(now)) {
            return;
        }
        let (jobs, waiters) = (std::mem::take(&mut self.jobs), std::mem::take(&mut self.waiters));
        for (job, waiter) in jobs.into_iter().zip(waiters) {
            if waiter.waits(now) {
                self.push(job, waiter);
            } else {
                waiter.tell(Err(LaneError::TimedOut));
            }
        }
    }

    /// Notes that the jobs are being sent. Those that have been sent too often are told
    /// [`LaneError::Unavailable`] and dropped: each time, the server proved that it did not serve.
    pub(super) fn note_sending(&mut self) {
        if self.waiters.iter().any(|waiter| waiter.sends >= MAX_SENDS) {
            let (jobs, waiters) =
                (std::mem::take(&mut self.jobs), std::mem::take(&mut self.waiters));
            for (job, waiter) in jobs.into_iter().zip(waiters) {
                if waiter.sends < MAX_SENDS {
                    self.push(job, waiter);
                } else {
                    waiter.tell(Err(LaneError::Unavailable));
                }
            }
        }
        for waiter in &mut self.waiters {
            waiter.sends += 1;
        }
    }

    /// Tells every waiter the same.
    pub(super) fn tell_all(self, error: &LaneError) {
        for waiter in self.waiters {
            waiter.tell(Err(error.clone()));
        }
    }

    /// Tells each waiter its answer, and returns the jobs of those for which `again` holds.
    pub(super) fn tell_each(
        self,
        answers: impl IntoIterator<Item = Result<A, LaneError>>,
        again: impl Fn(&LaneError) -> bool,
    ) -> Self {
        let mut left = Self::new();
        for ((job, waiter), answer) in self.jobs.into_iter().zip(self.waiters).zip(answers) {
            match answer {
                Err(error) if again(&error) => left.push(job, waiter),
                answer => waiter.tell(answer),
            }
        }
        left
    }
}
