//! A rollout of limits from one store to another.

use tollgate::model::{CellTransfer, Percent};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate_stores::{Atomic, Rollout};

use super::written_percent::WrittenPercent;

/// A store that decides a percentage of the subjects in one store and the rest in another. See
/// [`Rollout`] for its guarantees, and [`Atomic`] for calls with subjects in both.
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

    /// Returns the percentage, which can be read and set. Clones share one percentage.
    #[must_use]
    pub fn percentage(&self) -> &RolloutPercentage {
        self.rollout().percentage()
    }

    /// Returns the store that subjects leave.
    #[must_use]
    pub fn from(&self) -> &S {
        self.rollout().old()
    }

    /// Returns the store that subjects move to.
    #[must_use]
    pub fn to(&self) -> &S {
        self.rollout().new_store()
    }

    /// Returns the number of cells that moved with their subjects.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.rollout().transferred()
    }

    /// Returns the number of calls for which a store could not be queried for the usage of its
    /// subjects.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.rollout().failed_transfers()
    }

    /// Returns the number of charges of failed calls over both stores that could not be refunded,
    /// plus the refunds of which it is not certain that both stores received them.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.store.unrefunded() + self.rollout().unconfirmed_refunds()
    }

    /// Sets the percentage of the policy file if it differs from the previous file's. A percentage
    /// that an administrator has set therefore survives other changes of the file.
    pub(crate) fn follow(&self, percent: Percent) {
        let before = self.percentage().get();
        if self.written.follow(self.percentage(), percent) {
            let now = self.percentage().get();
            tracing::info!(%before, percent = %now, "the policy file changed the rollout");
        }
    }
}
