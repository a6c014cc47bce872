//! A rollout: subjects move from an old store to a new store by percentage.

use tollgate::model::{CellTransfer, Percent};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate_stores::{Atomic, Rollout};

use super::written_percent::WrittenPercent;

/// A store over two stores. One store decides for a percentage of the subjects, and the other store
/// decides for the rest. See [`Rollout`] for the guarantees, and [`Atomic`] for calls with subjects
/// of both stores.
#[derive(Debug)]
pub struct RolloutBackend<S> {
    store: Atomic<Rollout<S, S>>,
    written: WrittenPercent,
}

impl<S: CellTransfer> RolloutBackend<S> {
    pub(crate) fn new(store: Atomic<Rollout<S, S>>, written: Percent) -> Self {
        Self { store, written: WrittenPercent::new(written) }
    }

    pub(crate) const fn store(&self) -> &Atomic<Rollout<S, S>> {
        &self.store
    }

    fn rollout(&self) -> &Rollout<S, S> {
        self.store.partitions()
    }

    /// Returns the percentage of subjects that belong to the new store. The percentage can be read
    /// and set. A clone of the returned value shares the same percentage.
    #[must_use]
    pub fn percentage(&self) -> &RolloutPercentage {
        self.rollout().percentage()
    }

    /// Returns the old store, from which subjects move.
    #[must_use]
    pub fn from(&self) -> &S {
        self.rollout().old()
    }

    /// Returns the new store, to which subjects move.
    #[must_use]
    pub fn to(&self) -> &S {
        self.rollout().new_store()
    }

    /// Returns the number of cells that moved with their subjects.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.rollout().transferred()
    }

    /// Returns the number of calls with usage that could not be transferred from the other store.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.rollout().failed_transfers()
    }

    /// Returns the sum of two numbers: the charges of failed calls over both stores that could not
    /// be refunded, and the refunds that may not have reached both stores.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.store.unrefunded() + self.rollout().unconfirmed_refunds()
    }

    /// Sets the percentage to the percentage in the policy file if it differs from the percentage
    /// in the previous file. A percentage that an administrator has set therefore survives other
    /// changes of the file.
    pub(crate) fn follow(&self, percent: Percent) {
        let before = self.percentage().get();
        if self.written.follow(self.percentage(), percent) {
            let now = self.percentage().get();
            tracing::info!(%before, percent = %now, "the policy file changed the rollout");
        }
    }
}
