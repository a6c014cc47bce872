//! The task that sends the queued jobs.

use std::sync::Arc;

use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::CALLS_IN_FLIGHT;
use super::dispatcher::Dispatcher;
use super::pacing::{Pacing, Slot};
use super::queue::{Jobs, QueueReceiver};
use crate::codec::Codec;

/// Sends the jobs that callers could not send themselves. The jobs that are queued while no call
/// may be sent form the next call.
pub(super) struct Driver<C: Codec> {
    exit: QueueReceiver<C>,
    dispatcher: Arc<Dispatcher<C>>,
    pacing: Arc<Pacing>,
    /// The calls in flight, at most [`CALLS_IN_FLIGHT`]. If the set is dropped, the calls are
    /// aborted.
    calls: JoinSet<()>,
}

impl<C: Codec> Driver<C> {
    pub(super) fn new(
        exit: QueueReceiver<C>,
        dispatcher: Arc<Dispatcher<C>>,
        pacing: Arc<Pacing>,
    ) -> Self {
        Self { exit, dispatcher, pacing, calls: JoinSet::new() }
    }

    pub(super) async fn run(mut self) {
        while self.exit.wait().await {
            while self.calls.try_join_next().is_some() {}
            // The number of calls falls again: each call ends at the last deadline of its jobs at
            // the latest.
            while self.calls.len() >= CALLS_IN_FLIGHT {
                self.calls.join_next().await;
            }
            let slot = self.pacing.begin().await;
            if let Some(batch) = self.exit.take() {
                self.send(batch, slot).await;
            }
        }
    }

    /// Sends `batch`. If the round trip permits only one call in flight, waits until this call has
    /// ended or is overdue. If more calls are permitted, returns at once.
    async fn send(&mut self, batch: Jobs<C>, mut slot: Slot) {
        let dispatcher = Arc::clone(&self.dispatcher);
        let mut call = Box::pin(async move { dispatcher.dispatch(batch).await });
        if self.pacing.allowed() == 1 {
            if timeout(slot.overdue_after(), &mut call).await.is_ok() {
                // Callers that have just received an answer run before this task continues. The
                // next jobs of these callers are then sent together in one call.
                yield_now().await;
                return;
            }
            slot.overdue();
        }
        self.calls.spawn(async move {
            if timeout(slot.overdue_after(), &mut call).await.is_err() {
                slot.overdue();
                call.await;
            }
        });
    }
}
