//! The task that carries what has gathered.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::dispatcher::Dispatcher;
use super::queue::QueueReceiver;
use crate::codec::Codec;

/// How long the driver waits for a caller that sent its job itself. The turn keeps calls few, not
/// right, so it is no reason to wait for a caller that is not polled, or for a slow server.
const TURN_TIMEOUT: Duration = Duration::from_millis(1);

/// Carries one call at a time: what gathers meanwhile is the next one.
pub(super) struct Driver<C: Codec> {
    exit: QueueReceiver<C>,
    dispatcher: Arc<Dispatcher<C>>,
    /// One permit: whose turn it is to send.
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
            // Those who were just answered run first, so that what they ask next travels together
            // instead of after the first of them.
            yield_now().await;
            drop(turn);
        }
    }
}
