//! The way of one job to the node that decides it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Known;
use crate::answer::Answer;
use crate::cluster::group::Group;
use crate::cluster::slot::Slot;
use crate::cluster::status::RedirectCounters;
use crate::cluster::{NodeAddress, Redirect};
use crate::job::Job;
use crate::lane::{LaneError, Rank, Route};

/// How often one job is sent on to another node. Each time, a node proved that it did not run.
const MAX_HOPS: u32 = 16;

/// How long a job waits at first and at most for the rest of its keys to follow.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// Follows one job's slot from node to node.
pub(super) struct Way<'a> {
    known: &'a Known,
    counters: &'a RedirectCounters,
    slot: Slot,
    /// Where the job goes next, and how.
    group: Arc<Group>,
    route: Route,
    rank: Rank,
    hops: u32,
    pause: Duration,
}

impl<'a> Way<'a> {
    /// The way of a job of this `rank` on `slot`, which begins at `owner`.
    pub(super) fn new(
        known: &'a Known,
        counters: &'a RedirectCounters,
        slot: Slot,
        owner: Arc<Group>,
        rank: Rank,
    ) -> Self {
        let route = Route::Slot(slot.number());
        Self { known, counters, slot, group: owner, route, rank, hops: 0, pause: PAUSE }
    }

    /// Sends `first`, and where a node proves that it did not run, what `job` makes anew to where
    /// it points, until `deadline` at most.
    pub(super) async fn follow(
        mut self,
        first: Job,
        job: impl Fn() -> Job,
        deadline: Instant,
    ) -> Result<Answer, LaneError> {
        let mut next = first;
        loop {
            let primary = self.group.primary();
            match primary.submit_by(self.route, self.rank(), next, deadline).await {
                Err(LaneError::Redirected(redirect)) => {
                    self.counters.count(&redirect);
                    self.turn(redirect, deadline).await?;
                }
                Err(error) => {
                    // Another node may have taken over, which the nodes that answer know.
                    if matches!(error, LaneError::Unavailable | LaneError::TimedOut) {
                        self.known.doubt();
                    }
                    return Err(error);
                }
                Ok(answer) => return Ok(answer),
            }
            next = job();
        }
    }

    /// Goes where `redirect` points.
    async fn turn(&mut self, redirect: Redirect, deadline: Instant) -> Result<(), LaneError> {
        if Instant::now() >= deadline {
            return Err(LaneError::Redirected(redirect));
        }
        match redirect {
            Redirect::Moved { to, from } => {
                self.hop()?;
                self.move_to(&to, &from)
            }
            // Before 7.0, that of a command with several keys proves nothing of each of them.
            Redirect::Ask { .. } if matches!(self.route, Route::Slot(_)) => {
                self.hop()?;
                self.route = Route::Alone;
                Ok(())
            }
            Redirect::Ask { to } => {
                self.hop()?;
                self.group = self.group_of(&to)?;
                self.route = Route::Asking;
                Ok(())
            }
            Redirect::TryAgain => {
                // Others of the same command may be what has not followed.
                if self.route == Route::Alone || self.route == Route::Asking {
                    sleep_until(deadline.min(Instant::now() + self.pause)).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                    self.known.doubt();
                }
                self.group = self.owner()?;
                self.route = Route::Alone;
                Ok(())
            }
            Redirect::Down => {
                self.known.doubt();
                Err(LaneError::Redirected(redirect))
            }
        }
    }

    /// A slot that is on its way is of the history of the node that it leaves, which did not hold
    /// the job back.
    fn rank(&self) -> Rank {
        if self.route == Route::Asking { Rank::Ahead } else { self.rank }
    }

    fn move_to(&mut self, to: &NodeAddress, from: &str) -> Result<(), LaneError> {
        self.known.doubt_for(to);
        self.route = Route::Slot(self.slot.number());
        if self.group.has(to) {
            // The slot stayed, and the primary changed.
            self.group.primary().leave(from);
            return Ok(());
        }
        let moved = self.known.current().and_then(|map| map.moved(self.slot, to).cloned());
        self.group = match moved {
            Some(group) => group,
            None => self.guest(to)?,
        };
        Ok(())
    }

    fn hop(&mut self) -> Result<(), LaneError> {
        self.hops += 1;
        if self.hops > MAX_HOPS { Err(LaneError::Unavailable) } else { Ok(()) }
    }

    fn owner(&self) -> Result<Arc<Group>, LaneError> {
        let map = self.known.current();
        map.and_then(|map| map.owner(self.slot).cloned()).ok_or(LaneError::Unavailable)
    }

    fn group_of(&self, node: &NodeAddress) -> Result<Arc<Group>, LaneError> {
        let known = self.known.current().and_then(|map| map.group_of(node).cloned());
        known.map_or_else(|| self.guest(node), Ok)
    }

    fn guest(&self, node: &NodeAddress) -> Result<Arc<Group>, LaneError> {
        self.known.guest(node).ok_or(LaneError::Unavailable)
    }
}
