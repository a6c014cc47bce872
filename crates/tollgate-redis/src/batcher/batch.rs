//! Batches: jobs that are sent together, and their waiting callers.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::BatcherError;
use super::route::{Priority, Route};

/// The shortest time before its deadline at which a job is still sent. The batcher knows the
/// shard's clock to two milliseconds at best, so the shard would refuse a job with less time as
/// late.
const TOO_LATE_TO_SEND: Duration = Duration::from_millis(2);

/// The most times that one job is sent, including the first time. Usually the deadline of the job
/// ends the attempts earlier.
const MAX_SENDS: u8 = 8;

/// The caller that waits for the answer to a job, and the deadline of the job.
#[derive(Debug)]
pub(super) struct Waiter<A> {
    answer: oneshot::Sender<Result<A, BatcherError>>,
    deadline: Instant,
    route: Route,
    priority: Priority,
    sends: u8,
}

/// Jobs, and the waiter for each job at the same index.
#[derive(Debug)]
pub(super) struct Batch<J, A> {
    jobs: Vec<J>,
    waiters: Vec<Waiter<A>>,
}

impl<A> Waiter<A> {
    pub(super) fn new(
        answer: oneshot::Sender<Result<A, BatcherError>>,
        deadline: Instant,
        route: Route,
        priority: Priority,
    ) -> Self {
        Self { answer, deadline, route, priority, sends: 0 }
    }

    /// Returns whether the jobs of this waiter and of the waiter `other` may share a command.
    fn joins(&self, other: &Self) -> bool {
        self.priority == other.priority && self.route.joins(other.route)
    }

    /// Returns whether the caller still waits and the job can still be executed before its
    /// deadline.
    fn waits(&self, now: Instant) -> bool {
        !self.answer.is_closed() && self.deadline.saturating_duration_since(now) > TOO_LATE_TO_SEND
    }

    /// Sends the answer to the caller. If the caller no longer waits, the answer is dropped.
    fn complete(self, answer: Result<A, BatcherError>) {
        let _ = self.answer.send(answer);
    }
}

impl<J, A> Batch<J, A> {
    pub(super) fn new() -> Self {
        Self { jobs: Vec::new(), waiters: Vec::new() }
    }

    /// Creates a batch with one job.
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

    pub(super) fn jobs_mut(&mut self) -> &mut [J] {
        &mut self.jobs
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns the earliest deadline of the jobs, or `None` if the batch is empty. After that time,
    /// at least one caller no longer waits.
    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.waiters.iter().map(|waiter| waiter.deadline).min()
    }

    /// Returns the latest deadline of the jobs, or `None` if the batch is empty. After that time,
    /// no caller waits.
    pub(super) fn last_deadline(&self) -> Option<Instant> {
        self.waiters.iter().map(|waiter| waiter.deadline).max()
    }

    /// Drops the jobs without a waiting caller, and the jobs that cannot be executed in time any
    /// more. No dropped job has been executed.
    pub(super) fn drop_expired(&mut self, now: Instant) {
        if self.waiters.iter().all(|waiter| waiter.waits(now)) {
            return;
        }
        let (jobs, waiters) = (std::mem::take(&mut self.jobs), std::mem::take(&mut self.waiters));
        for (job, waiter) in jobs.into_iter().zip(waiters) {
            if waiter.waits(now) {
                self.push(job, waiter);
            } else {
                waiter.complete(Err(BatcherError::TimedOut));
            }
        }
    }

    /// Records that the jobs are being sent. Jobs that were sent too often are dropped, and their
    /// callers get [`BatcherError::Unavailable`]. No dropped job was executed: after each attempt,
    /// the server proved that it did not run the job.
    pub(super) fn note_sending(&mut self) {
        if self.waiters.iter().any(|waiter| waiter.sends >= MAX_SENDS) {
            let (jobs, waiters) =
                (std::mem::take(&mut self.jobs), std::mem::take(&mut self.waiters));
            for (job, waiter) in jobs.into_iter().zip(waiters) {
                if waiter.sends < MAX_SENDS {
                    self.push(job, waiter);
                } else {
                    waiter.complete(Err(BatcherError::Unavailable));
                }
            }
        }
        for waiter in &mut self.waiters {
            waiter.sends += 1;
        }
    }

    /// Splits the batch into several batches. The jobs of each batch may share a command and keep
    /// their original order. If one server stores every key, all jobs of the same priority are in
    /// one batch.
    pub(super) fn into_parts(self) -> Vec<Self> {
        let Some(first) = self.waiters.first() else { return Vec::new() };
        if self.len() == 1 || self.waiters.iter().all(|waiter| waiter.joins(first)) {
            return vec![self];
        }
        let (mut parts, mut part_of) = (Vec::<Self>::new(), HashMap::new());
        for (job, waiter) in self.jobs.into_iter().zip(self.waiters) {
            let place = match waiter.route {
                Route::Any => *part_of.entry((None, waiter.priority)).or_insert(parts.len()),
                Route::Slot(slot) => {
                    *part_of.entry((Some(slot), waiter.priority)).or_insert(parts.len())
                }
                Route::Separate | Route::Asking => parts.len(),
            };
            match parts.get_mut(place) {
                Some(part) => part.push(job, waiter),
                None => parts.push(Self::of(job, waiter)),
            }
        }
        parts
    }

    /// Returns the route of the jobs. All jobs have the same route.
    pub(super) fn route(&self) -> Route {
        self.waiters.first().map_or(Route::Any, |waiter| waiter.route)
    }

    /// Returns the priority of the jobs. All jobs have the same priority.
    pub(super) fn priority(&self) -> Priority {
        self.waiters.first().map_or(Priority::Normal, |waiter| waiter.priority)
    }

    /// Appends the jobs of `other`, with their waiters, to this batch.
    pub(super) fn append(&mut self, mut other: Self) {
        self.jobs.append(&mut other.jobs);
        self.waiters.append(&mut other.waiters);
    }

    /// Sends the same error to every waiter.
    pub(super) fn complete_all(self, error: &BatcherError) {
        for waiter in self.waiters {
            waiter.complete(Err(error.clone()));
        }
    }

    /// Delivers `answers` to the waiters of the jobs, in the order of the jobs. If an answer is an
    /// error for which `again` returns true, the waiter gets no answer. The returned batch contains
    /// the jobs of these waiters, which must be sent again.
    pub(super) fn complete_each(
        self,
        answers: impl IntoIterator<Item = Result<A, BatcherError>>,
        again: impl Fn(&BatcherError) -> bool,
    ) -> Self {
        let mut left = Self::new();
        for ((job, waiter), answer) in self.jobs.into_iter().zip(self.waiters).zip(answers) {
            match answer {
                Err(error) if again(&error) => left.push(job, waiter),
                answer => waiter.complete(answer),
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits jobs with these routes into batches, and returns the indexes of the jobs in each
    /// batch.
    fn parts(routes: &[Route]) -> Vec<Vec<usize>> {
        let usual: Vec<_> = routes.iter().map(|route| (*route, Priority::Normal)).collect();
        parts_by_priority(&usual)
    }

    fn parts_by_priority(ways: &[(Route, Priority)]) -> Vec<Vec<usize>> {
        let mut batch = Batch::<usize, ()>::new();
        for (job, (route, priority)) in ways.iter().enumerate() {
            batch.push(job, Waiter::new(oneshot::channel().0, Instant::now(), *route, *priority));
        }
        batch.into_parts().into_iter().map(|part| part.jobs).collect()
    }

    #[tokio::test]
    async fn jobs_of_one_server_stay_together_and_those_of_a_cluster_by_their_slots() {
        use Route::{Any, Asking, Separate, Slot};
        assert_eq!(parts(&[]), [[0; 0]; 0]);
        assert_eq!(parts(&[Any, Any, Any]), [[0, 1, 2]]);
        assert_eq!(parts(&[Slot(7), Slot(7)]), [[0, 1]]);
        let mixed = [Slot(7), Slot(8), Slot(7), Separate, Asking, Separate, Slot(8)];
        assert_eq!(parts(&mixed), [vec![0, 2], vec![1, 6], vec![3], vec![4], vec![5]]);
        assert_eq!(parts(&[Asking, Asking]), [[0], [1]]);
    }

    #[tokio::test]
    async fn what_goes_ahead_goes_without_what_may_be_held_back() {
        use Priority::{Normal, Replay};
        use Route::{Any, Slot};
        assert_eq!(parts_by_priority(&[(Any, Replay), (Any, Replay)]), [[0, 1]]);
        let of_a_server = [(Any, Normal), (Any, Replay), (Any, Normal), (Any, Replay)];
        assert_eq!(parts_by_priority(&of_a_server), [[0, 2], [1, 3]]);
        let of_a_node =
            [(Slot(7), Normal), (Slot(7), Replay), (Slot(8), Replay), (Slot(7), Replay)];
        assert_eq!(parts_by_priority(&of_a_node), [vec![0], vec![1, 3], vec![2]]);
    }

    #[tokio::test]
    async fn a_batch_runs_until_the_first_of_its_callers_leaves() {
        let now = Instant::now();
        let after = |ms| now + Duration::from_millis(ms);
        let mut batch = Batch::<(), ()>::new();
        assert_eq!(batch.first_deadline(), None);
        for ms in [9, 3, 6] {
            let answer = oneshot::channel().0;
            batch.push((), Waiter::new(answer, after(ms), Route::Any, Priority::Normal));
        }
        assert_eq!(batch.first_deadline(), Some(after(3)));
        assert_eq!(batch.last_deadline(), Some(after(9)));
    }

    #[tokio::test]
    async fn a_job_that_was_sent_too_often_is_dropped_and_leaves_the_others() {
        let mut batch = Batch::<&str, ()>::new();
        let push = |batch: &mut Batch<&str, ()>, job| {
            let (answer, answered) = oneshot::channel();
            let deadline = Instant::now() + Duration::from_secs(1);
            batch.push(job, Waiter::new(answer, deadline, Route::Any, Priority::Normal));
            answered
        };
        let mut old = push(&mut batch, "old");
        for _ in 0..8 {
            batch.note_sending();
        }
        let mut young = push(&mut batch, "young");
        assert_eq!(batch.jobs(), ["old", "young"], "eight attempts are permitted");
        assert!(old.try_recv().is_err());
        batch.note_sending();
        assert_eq!(batch.jobs(), ["young"]);
        assert_eq!(old.try_recv(), Ok(Err(BatcherError::Unavailable)));
        assert!(young.try_recv().is_err());
    }
}
