//! Follows the redirects of a job to the node that decides the job.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::SharedMap;
use crate::answer::Answer;
use crate::batcher::{BatcherError, Priority, Route};
use crate::cluster::group::Group;
use crate::cluster::status::RedirectCounters;
use crate::job::Job;
use crate::node_address::NodeAddress;
use crate::redirect::Redirect;
use crate::slot::Slot;

/// The most redirects that one job follows. Each redirect is a server's reply that it did not
/// execute the job.
const MAX_HOPS: u32 = 16;

/// The first pause while a job waits until all of its keys have moved. Each further pause is twice
/// as long, up to `PAUSE_MAX`.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// Sends a job to the node that owns the job's slot, and follows the redirects of the nodes.
pub(super) struct RedirectFollower<'a> {
    known: &'a SharedMap,
    counters: &'a RedirectCounters,
    slot: Slot,
    /// The primary to which the job is sent next, with its replicas.
    group: Arc<Group>,
    /// The way in which the job is sent: with which other jobs, and whether after `ASKING`.
    route: Route,
    priority: Priority,
    hops: u32,
    pause: Duration,
}

impl<'a> RedirectFollower<'a> {
    /// Creates a follower for a job of this `priority` on `slot`. The job is first sent to `owner`.
    pub(super) fn new(
        known: &'a SharedMap,
        counters: &'a RedirectCounters,
        slot: Slot,
        owner: Arc<Group>,
        priority: Priority,
    ) -> Self {
        let route = Route::Slot(slot.number());
        Self { known, counters, slot, group: owner, route, priority, hops: 0, pause: PAUSE }
    }

    /// Sends the job `first` and follows redirects until `deadline` at most. A redirect proves that
    /// the job was not executed. After each redirect, creates the job again with `job` and sends
    /// the new job to the node that the redirect names.
    pub(super) async fn follow(
        mut self,
        first: Job,
        job: impl Fn() -> Job,
        deadline: Instant,
    ) -> Result<Answer, BatcherError> {
        let mut next = first;
        loop {
            let primary = self.group.primary();
            match primary.submit_by(self.route, self.priority(), next, deadline).await {
                Err(BatcherError::Redirected(redirect)) => {
                    self.counters.count(&redirect);
                    self.turn(redirect, deadline).await?;
                }
                Err(error) => {
                    // Another node may have taken over the slots of this node. A discovery finds
                    // that node.
                    if matches!(error, BatcherError::Unavailable | BatcherError::TimedOut) {
                        self.known.request_refresh();
                    }
                    return Err(error);
                }
                Ok(answer) => return Ok(answer),
            }
            next = job();
        }
    }

    /// Selects the node and the route for the next attempt, as `redirect` requires. If only some of
    /// the job's keys have moved to the new node of the slot, waits for a short time before.
    ///
    /// # Errors
    /// The error with which the job ends, if no further attempt is possible.
    async fn turn(&mut self, redirect: Redirect, deadline: Instant) -> Result<(), BatcherError> {
        if Instant::now() >= deadline {
            return Err(BatcherError::Redirected(redirect));
        }
        match redirect {
            Redirect::Moved { to, from } => {
                self.hop()?;
                self.move_to(&to, &from)
            }
            // Before Redis 7.0, an `ASK` reply to a command with several keys does not prove that
            // every key has left the node.
            Redirect::Ask { .. } if matches!(self.route, Route::Slot(_)) => {
                self.hop()?;
                self.route = Route::Separate;
                Ok(())
            }
            Redirect::Ask { to } => {
                self.hop()?;
                self.group = self.group_of(&to)?;
                self.route = Route::Asking;
                Ok(())
            }
            Redirect::TryAgain => {
                // The keys that the node lacks may be keys of other jobs in the same command.
                if self.route == Route::Separate || self.route == Route::Asking {
                    sleep_until(deadline.min(Instant::now() + self.pause)).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                    self.known.request_refresh();
                }
                self.group = self.owner()?;
                self.route = Route::Separate;
                Ok(())
            }
            Redirect::Down => {
                self.known.request_refresh();
                Err(BatcherError::Redirected(redirect))
            }
        }
    }

    /// Returns the priority of the job. While a slot is being moved, a job that is sent to the
    /// slot's new node still belongs to the epoch of the old node. The old node did not hold back
    /// the job, so the new node must not hold back the job either.
    fn priority(&self) -> Priority {
        if self.route == Route::Asking { Priority::Replay } else { self.priority }
    }

    fn move_to(&mut self, to: &NodeAddress, from: &str) -> Result<(), BatcherError> {
        self.known.request_refresh_from(to);
        self.route = Route::Slot(self.slot.number());
        if self.group.has(to) {
            // The slot stayed with the group, but another node of the group is the primary now.
            self.group.primary().leave(from);
            return Ok(());
        }
        let moved = self.known.current().and_then(|map| map.moved(self.slot, to).cloned());
        self.group = match moved {
            Some(group) => group,
            None => self.importing_group(to)?,
        };
        Ok(())
    }

    fn hop(&mut self) -> Result<(), BatcherError> {
        self.hops += 1;
        if self.hops > MAX_HOPS { Err(BatcherError::Unavailable) } else { Ok(()) }
    }

    fn owner(&self) -> Result<Arc<Group>, BatcherError> {
        let map = self.known.current();
        map.and_then(|map| map.owner(self.slot).cloned()).ok_or(BatcherError::Unavailable)
    }

    fn group_of(&self, node: &NodeAddress) -> Result<Arc<Group>, BatcherError> {
        let known = self.known.current().and_then(|map| map.group_of(node).cloned());
        known.map_or_else(|| self.importing_group(node), Ok)
    }

    fn importing_group(&self, node: &NodeAddress) -> Result<Arc<Group>, BatcherError> {
        self.known.importing_group(node).ok_or(BatcherError::Unavailable)
    }
}
