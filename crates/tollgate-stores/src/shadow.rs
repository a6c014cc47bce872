//! A shadow store, which receives the same calls and is compared with the deciding store.
//!
//! Source: the dark reads with which services move between stores. The new store receives real
//! traffic, its answers are not used, and every difference is examined before the switch.

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
use difference::Comparison;
use queue::ShadowCall;
use tollgate::hash_key::HashKey;
use tollgate::rollout_percentage::RolloutPercentage;

/// The maximum number of calls that wait in each of the [`QUEUES`] queues to the shadow store.
/// Further calls are skipped and counted.
pub const MAX_WAITING: usize = 1_024;

/// The number of queues to the shadow store. Calls on one subject keep their order. Calls on
/// different subjects may overtake each other.
pub const QUEUES: usize = 16;

/// A store that decides with one store and compares its answers with the answers of a shadow store.
///
/// # Guarantees
/// - The deciding store's answers are returned unchanged and without delay, because the shadow
///   store is called from a separate task.
/// - Calls on one subject reach the shadow store one after the other, in the order of the deciding
///   store's answers. When a charge is refunded at the deciding store, the shadow store's own
///   charge for the same call is refunded at the shadow store.
/// - Memory is bounded: at most [`QUEUES`] × [`MAX_WAITING`] calls wait. Further calls are skipped.
///
/// # Limitations
/// This wrapper adds no limitation to the deciding store. The comparison covers the subjects that
/// the percentage includes and must be interpreted with care:
/// - A shadow store that starts empty differs until every window that was running has ended.
/// - Concurrent calls on one subject may be decided in another order than the order in which they
///   reach the shadow store. A difference then shows the order and not a fault of the store.
/// - Decisions of the deciding store's fallback are not compared or charged at the shadow store.
///   Decisions of the shadow store's own fallback count as unanswered.
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
    /// Wraps `store` and compares its answers with the answers of `shadow`, for the subjects that
    /// `percentage` includes.
    ///
    /// Needs a tokio runtime. Dropping this value discards the calls that wait for the shadow
    /// store.
    #[must_use]
    pub fn start(key: &HashKey, percentage: RolloutPercentage, store: A, shadow: B) -> Self {
        let (shadow, comparison) = (Arc::new(shadow), Arc::<Comparison>::default());
        let (mut queues, mut tasks) = (Vec::with_capacity(QUEUES), Vec::with_capacity(QUEUES));
        for _ in 0..QUEUES {
            let (queue, receiver) = mpsc::channel(MAX_WAITING);
            let task = queue::run(receiver, Arc::clone(&shadow), Arc::clone(&comparison));
            queues.push(queue);
            tasks.push(tokio::spawn(task).abort_handle());
        }
        let hasher = SipHasher13::new_with_key(&key.hash(b"shadow"));
        let skipped = AtomicU64::new(0);
        Self { store, shadow, percentage, hasher, queues, tasks, comparison, skipped }
    }
}

impl<A, B> Shadow<A, B> {
    /// Returns the store that decides.
    #[must_use]
    pub const fn store(&self) -> &A {
        &self.store
    }

    /// Returns the shadow store.
    #[must_use]
    pub fn shadow(&self) -> &B {
        &self.shadow
    }

    /// Returns the percentage of subjects that are compared. The percentage can be read and
    /// changed.
    #[must_use]
    pub const fn percentage(&self) -> &RolloutPercentage {
        &self.percentage
    }

    /// Returns the counts of comparisons and differences.
    #[must_use]
    pub fn differences(&self) -> Differences {
        Differences { skipped: self.skipped.load(Ordering::Relaxed), ..self.comparison.so_far() }
    }

    /// Returns a hash of the subject. The hashes are evenly distributed over 64 bits.
    fn hash(&self, subject: &Subject) -> u64 {
        let mut hasher = self.hasher;
        hasher.write(subject.as_bytes());
        hasher.finish128().h1
    }

    /// Queues an answered call for comparison with the shadow store.
    fn compare(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        let Some(first) = charges.first() else { return };
        let hash = self.hash(first.subject);
        if readings.source() != DecisionSource::Store || !self.percentage.get().includes(hash) {
            return;
        }
        // The percentage uses the highest bits of the hash, and the choice of the queue uses the
        // lowest bits.
        let queue = &self.queues[hash as usize % self.queues.len()];
        let Ok(permit) = queue.try_reserve() else {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let charges = charges.iter().map(OwnedCharge::new).collect();
        permit.send(ShadowCall { now, charges, readings: readings.clone() });
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
            .field("percentage", &self.percentage.get())
            .finish_non_exhaustive()
    }
}
