//! Callers that send requests continuously, and the counts of the answers.

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

/// The number of concurrent callers, spread over the nodes.
pub(crate) const CALLERS: usize = 8;
/// The pause between two requests of one caller.
const PACE: Duration = Duration::from_millis(2);

/// The counts and durations of the callers' requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The number of decisions.
    pub(crate) decisions: AtomicU64,
    /// The decisions that a node made without the store.
    pub(crate) fallback: AtomicU64,
    /// The requests for which there was no decision. The policy's fallback hides the error from the
    /// caller, so this count must stay zero.
    pub(crate) unanswered: AtomicU64,
    /// The durations of decisions.
    pub(crate) latency: Latency,
    /// The delays with which the machine wakes the callers. The durations of decisions include
    /// these delays.
    pub(crate) lateness: Latency,
}

/// The numbers of decisions until a given time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    /// All decisions.
    pub(crate) all: u64,
    /// The decisions that a node made without the store.
    pub(crate) fallback: u64,
}

/// Callers that send requests until they are stopped.
#[derive(Debug)]
pub(crate) struct Load {
    shared: Arc<Shared>,
    callers: JoinSet<()>,
}

/// The data that all callers share.
#[derive(Debug, Default)]
struct Shared {
    tally: Arc<Tally>,
    ends: AtomicBool,
    /// A lock for pausing the load. Each caller holds a read lock during a request.
    in_progress: RwLock<()>,
}

impl Load {
    /// Starts the callers of all `nodes`.
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

    /// Returns the number of decisions so far that a node made without the store.
    pub(crate) fn fallback(&self) -> u64 {
        self.shared.tally.fallback.load(Ordering::Relaxed)
    }

    /// Returns the number of all decisions so far, and the number of decisions so far that a node
    /// made without the store.
    pub(crate) fn decided(&self) -> Decided {
        let tally = &self.shared.tally;
        Decided { all: tally.decisions.load(Ordering::Relaxed), fallback: self.fallback() }
    }

    /// Waits until no request is in flight. No request is sent until the returned guard is dropped.
    pub(crate) async fn pause_load(&self) -> RwLockWriteGuard<'_, ()> {
        self.shared.in_progress.write().await
    }

    /// Stops the callers and waits for the outstanding answers.
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
        let _asks = shared.in_progress.read().await;
        let question = Question::of(numbers.fetch_add(1, Ordering::Relaxed));
        let started = Instant::now();
        let (source, to_give_back) = nodes.decide(caller, &question).await;
        shared.tally.latency.took(started.elapsed());
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
            DecisionSource::Fallback(_) => self.fallback.fetch_add(1, Ordering::Relaxed),
            DecisionSource::Failure(_) => self.unanswered.fetch_add(1, Ordering::Relaxed),
            DecisionSource::Store | DecisionSource::DenyCache | DecisionSource::Overflow => 0,
        };
    }
}
