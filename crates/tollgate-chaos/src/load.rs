//! Callers that ask all the time, and what they were told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{RwLock, RwLockWriteGuard};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tollgate::DecisionSource;

use super::latency::Latency;
use super::nodes::Nodes;
use super::question::Question;

/// Callers that ask at the same time, spread over the nodes.
pub(crate) const CALLERS: usize = 8;
/// Between two questions of one caller.
const PACE: Duration = Duration::from_millis(2);

/// What callers were told.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Decisions.
    pub(crate) decisions: AtomicU64,
    /// Of those, by this node alone.
    pub(crate) alone: AtomicU64,
    /// Of those, by nothing: an error to the caller, were it not for the policy's word.
    pub(crate) unanswered: AtomicU64,
    /// How long decisions took.
    pub(crate) latency: Latency,
    /// How much later than asked for callers were woken: the machine's own part in any time.
    pub(crate) lateness: Latency,
}

/// Callers that ask until they are told to end.
#[derive(Debug)]
pub(crate) struct Load {
    shared: Arc<Shared>,
    callers: JoinSet<()>,
}

/// What all callers share.
#[derive(Debug, Default)]
struct Shared {
    tally: Arc<Tally>,
    ends: AtomicBool,
    /// Held by each caller while it asks.
    asks: RwLock<()>,
}

impl Load {
    /// Callers of all `nodes` begin.
    pub(crate) fn begin<N: Nodes>(nodes: &Arc<N>) -> Self {
        let (shared, numbers) = (Arc::<Shared>::default(), Arc::<AtomicU64>::default());
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (nodes, shared) = (Arc::clone(nodes), Arc::clone(&shared));
            let numbers = Arc::clone(&numbers);
            callers.spawn(async move { call(&*nodes, caller, &numbers, &shared).await });
        }
        Self { shared, callers }
    }

    /// Decisions so far that a node made alone.
    pub(crate) fn alone(&self) -> u64 {
        self.shared.tally.alone.load(Ordering::Relaxed)
    }

    /// Waits until no question is under way; none is asked while what is returned is held.
    pub(crate) async fn pause_load(&self) -> RwLockWriteGuard<'_, ()> {
        self.shared.asks.write().await
    }

    /// Waits for the answers that are due; no caller asks again.
    pub(crate) async fn end(mut self) -> Arc<Tally> {
        self.shared.ends.store(true, Ordering::Relaxed);
        while self.callers.join_next().await.is_some() {}
        Arc::clone(&self.shared.tally)
    }
}

async fn call(nodes: &impl Nodes, caller: usize, numbers: &AtomicU64, shared: &Shared) {
    let mut turns = interval(PACE);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !shared.ends.load(Ordering::Relaxed) {
        let due = turns.tick().await;
        shared.tally.lateness.took(due.elapsed());
        let _asks = shared.asks.read().await;
        let question = Question::of(numbers.fetch_add(1, Ordering::Relaxed));
        let begun = Instant::now();
        let (source, to_give_back) = nodes.ask(caller, &question).await;
        shared.tally.latency.took(begun.elapsed());
        shared.tally.count(source);
        if let Some(receipt) = to_give_back {
            nodes.refund(caller, receipt).await;
        }
    }
}

impl Tally {
    fn count(&self, source: DecisionSource) {
        self.decisions.fetch_add(1, Ordering::Relaxed);
        match source {
            DecisionSource::Fallback(_) => self.alone.fetch_add(1, Ordering::Relaxed),
            DecisionSource::Failure(_) => self.unanswered.fetch_add(1, Ordering::Relaxed),
            DecisionSource::Store | DecisionSource::DenyCache | DecisionSource::Overflow => 0,
        };
    }
}
