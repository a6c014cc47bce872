//! The queue of jobs to send, bounded in number and in bytes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::BatcherError;
use super::BatcherLimits;
use super::batch::{Batch, Waiter};
use super::sync::AtomicUsize;
use crate::codec::Codec;

/// A queued job.
struct Item<C: Codec> {
    job: C::Job,
    bytes: usize,
    waiter: Waiter<C::Answer>,
}

/// The sending end of the queue. If the queue is full, it rejects further jobs.
pub(super) struct QueueSender<C: Codec> {
    items: Sender<Item<C>>,
    bytes: Arc<AtomicUsize>,
    limits: BatcherLimits,
}

/// The receiver of the queue, which returns batches.
pub(super) struct QueueReceiver<C: Codec> {
    items: Receiver<Item<C>>,
    /// The first job of the next batch, if the job was already received from the channel.
    /// [`wait`](Self::wait) receives this job, and a job that does not fit into the last batch is
    /// kept here too.
    held: Option<Item<C>>,
    bytes: Arc<AtomicUsize>,
    limits: BatcherLimits,
}

/// The jobs of one batch, with their waiters.
pub(super) type Jobs<C> = Batch<<C as Codec>::Job, <C as Codec>::Answer>;

/// Creates an empty queue, and returns its two ends.
pub(super) fn queue<C: Codec>(limits: BatcherLimits) -> (QueueSender<C>, QueueReceiver<C>) {
    let (sender, receiver) = channel(limits.waiting.max(1));
    let bytes = Arc::new(AtomicUsize::new(0));
    let entry = QueueSender { items: sender, bytes: Arc::clone(&bytes), limits };
    (entry, QueueReceiver { items: receiver, held: None, bytes, limits })
}

impl<C: Codec> QueueSender<C> {
    /// Returns whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) == 0
    }

    /// Adds `job`, which has `bytes` bytes, to the queue. If the queue is full, rejects the job at
    /// once.
    pub(super) fn put(
        &self,
        job: C::Job,
        bytes: usize,
        waiter: Waiter<C::Answer>,
    ) -> Result<(), BatcherError> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.limits.waiting_bytes {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(BatcherError::Overloaded);
        }
        self.items.try_send(Item { job, bytes, waiter }).map_err(|error| {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => BatcherError::Overloaded,
                TrySendError::Closed(_) => BatcherError::Unavailable,
            }
        })?;
        #[cfg(feature = "simulation")]
        tollgate_link::simulation::record_queue(self.items.max_capacity() - self.items.capacity());
        Ok(())
    }
}

impl<C: Codec> QueueReceiver<C> {
    /// Waits until a job is queued, and keeps the job for the next batch. Returns false when no
    /// further job can be queued.
    pub(super) async fn wait(&mut self) -> bool {
        if self.held.is_none() {
            self.held = self.items.recv().await;
        }
        self.held.is_some()
    }

    /// Returns as many queued jobs as one call may carry, or `None` if no job is queued.
    pub(super) fn take(&mut self) -> Option<Jobs<C>> {
        let first = match self.held.take() {
            Some(item) => item,
            None => self.items.try_recv().ok()?,
        };
        let mut batch = Batch::new();
        let bytes = self.load(&mut batch, first);
        self.fill(&mut batch, bytes);
        Some(batch)
    }

    /// Moves queued jobs into `batch` until one call may carry no more jobs. `bytes` is the size of
    /// the jobs that are already in `batch`.
    fn fill(&mut self, batch: &mut Jobs<C>, mut bytes: usize) {
        while batch.len() < self.limits.call {
            let Ok(item) = self.items.try_recv() else { return };
            if bytes.saturating_add(item.bytes) > self.limits.call_bytes {
                self.held = Some(item);
                return;
            }
            bytes += self.load(batch, item);
        }
    }

    fn load(&self, batch: &mut Jobs<C>, item: Item<C>) -> usize {
        self.bytes.fetch_sub(item.bytes, Ordering::Relaxed);
        batch.push(item.job, item.waiter);
        item.bytes
    }
}

impl<C: Codec> fmt::Debug for QueueSender<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueSender")
            .field("free", &self.items.capacity())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
