//! A second store that answers too, and is compared.
//!
//! DecisionSource: the dark reads by which services move between stores: the new one answers the real
//! traffic, nobody acts on it, and every difference is looked at before anybody does.

mod difference;
mod queue;

use std::fmt;
use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip128::{Hasher128, SipHasher13};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tollgate_core::{
    Charge, DecisionSource, KeyedHash, Readings, Store, StoreError, Subject, Timestamp,
};

pub use difference::{ComparedAnswer, Difference, DifferenceKind, Differences, MAX_EXAMPLES};

use super::owned_charge::OwnedCharge;
use super::rollout_percentage::RolloutPercentage;
use crate::hash_key::HashKey;
use difference::Comparison;
use queue::ShadowCall;

/// Calls that wait for the shadow at each of [`QUEUES`] queues; one more is skipped, and counted.
pub const MAX_WAITING: usize = 1_024;

/// Queues to the shadow: calls on one subject keep their order, others pass each other.
pub const QUEUES: usize = 16;

/// Answers by one store, and asks another one too, whose answers are compared and thrown away.
///
/// # What it keeps
/// - The store's answers, unchanged, and no later: the shadow is asked off the caller's path.
/// - Calls on one subject reach the shadow in the order of the store's answers, one after the
///   other. What the store gives back, the shadow gives back of its own charge.
/// - Memory: at most [`QUEUES`] times [`MAX_WAITING`] calls wait; what is more is skipped.
///
/// # What it weakens
/// Nothing of the store. What it tells is of the subjects that the percentage includes, and needs to be
/// read with care:
/// - A shadow that starts empty differs until every window that ran has ended.
/// - Calls on one subject that run side by side may be decided in another order than they are
///   heard in: then a difference tells of the order, not of the store.
/// - What the store's stand-in decided is not compared, and the shadow is not charged for it. What
///   the shadow's own stand-in decided is no answer of the shadow.
pub struct Shadow<A, B> {
    store: A,
    shadow: Arc<B>,
    percentage: RolloutPercentage,
    hasher: SipHasher13,
    queues: Vec<mpsc::Sender<ShadowCall>>,
    tasks: Vec<AbortHandle>,
    comparison: Arc<Comparison>,
    skipped: AtomicU64,
}

impl<A, B: Store + 'static> Shadow<A, B> {
    /// `store`, and `shadow` to be compared with it for the subjects that `percentage` includes.
    ///
    /// Needs a tokio runtime. What waits for the shadow is given up when this is dropped.
    #[must_use]
    pub fn start(key: &HashKey, percentage: RolloutPercentage, store: A, shadow: B) -> Self {
        let (shadow, comparison) = (Arc::new(shadow), Arc::<Comparison>::default());
        let (mut queues, mut tasks) = (Vec::with_capacity(QUEUES), Vec::with_capacity(QUEUES));
        for _ in 0..QUEUES {
            let (queue, heard) = mpsc::channel(MAX_WAITING);
            let task = queue::run(heard, Arc::clone(&shadow), Arc::clone(&comparison));
            queues.push(queue);
            tasks.push(tokio::spawn(task).abort_handle());
        }
        let hasher = SipHasher13::new_with_key(&key.hash(b"shadow"));
        let skipped = AtomicU64::new(0);
        Self { store, shadow, percentage, hasher, queues, tasks, comparison, skipped }
    }
}

impl<A, B> Shadow<A, B> {
    /// The store whose answers count.
    #[must_use]
    pub const fn store(&self) -> &A {
        &self.store
    }

    /// The store that is compared.
    #[must_use]
    pub fn shadow(&self) -> &B {
        &self.shadow
    }

    /// Which percent of subjects are compared, to read and to turn.
    #[must_use]
    pub const fn percentage(&self) -> &RolloutPercentage {
        &self.percentage
    }

    /// What was compared so far, and how it differed.
    #[must_use]
    pub fn differences(&self) -> Differences {
        Differences { skipped: self.skipped.load(Ordering::Relaxed), ..self.comparison.so_far() }
    }

    /// A hash of a subject that is spread evenly over 64 bits.
    fn hash(&self, subject: &Subject) -> u64 {
        let mut hasher = self.hasher;
        hasher.write(subject.as_bytes());
        hasher.finish128().h1
    }

    /// Has the shadow asked what the store answered.
    fn compare(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        let Some(first) = charges.first() else { return };
        let hash = self.hash(first.subject);
        if readings.source() != DecisionSource::Store || !self.percentage.get().includes(hash) {
            return;
        }
        // The percentage takes the highest part of the hash, the queues the lowest.
        let queue = &self.queues[hash as usize % self.queues.len()];
        let Ok(place) = queue.try_reserve() else {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let charges = charges.iter().map(OwnedCharge::new).collect();
        place.send(ShadowCall { now, charges, readings: readings.clone() });
    }
}

impl<A: Store, B: Store> Store for Shadow<A, B> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let readings = self.store.apply(now, charges).await?;
        self.compare(now, charges, &readings);
        Ok(readings)
    }
}

impl<A, B> Drop for Shadow<A, B> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl<A: fmt::Debug, B: fmt::Debug> fmt::Debug for Shadow<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shadow")
            .field("store", &self.store)
            .field("shadow", &self.shadow)
            .field("dial", &self.percentage.get())
            .finish_non_exhaustive()
    }
}
