//! The task that sends the queued jobs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::dispatcher::Dispatcher;
use super::queue::QueueReceiver;
use crate::codec::Codec;

/// How long the driver waits for a caller that sends its job itself. Turns keep the number of calls
/// low and are not needed for correctness, so the driver does not wait longer for a caller that is
/// not polled or for a slow server.
const TURN_TIMEOUT: Duration = Duration::from_millis(1);

/// Sends one call at a time. Jobs that are queued during a call form the next one.
pub(super) struct Driver<C: Codec> {
    exit: QueueReceiver<C>,
    dispatcher: Arc<Dispatcher<C>>,
    /// One permit: the turn to send.
    turn: Arc<Semaphore>,
}

impl<C: Codec> Driver<C> {
    pub(super) fn new(
        exit: QueueReceiver<C>,
        dispatcher: Arc<Dispatcher<C>>,
        turn: Arc<Semaphore>,
    ) -> Self {
        Self { exit, dispatcher, turn }
    }

    pub(super) async fn run(mut self) {
        while self.exit.wait().await {
            let turn = timeout(TURN_TIMEOUT, self.turn.acquire()).await;
            if let Some(batch) = self.exit.take() {
                self.dispatcher.dispatch(batch).await;
            }
            // Callers that just received an answer run first. Their next jobs then travel together
            // instead of after the first of them.
            yield_now().await;
            drop(turn);
        }
    }
}
