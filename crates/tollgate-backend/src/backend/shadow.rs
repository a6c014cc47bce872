//! A store, and a second store that is compared with the first.

use tollgate::model::Percent;
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate_stores::Shadow;
use tollgate_stores::shadow::Differences;

use super::written_percent::WrittenPercent;

/// A store that decides, and a shadow store that receives the same calls. See [`Shadow`].
#[derive(Debug)]
pub struct ShadowBackend<S> {
    shadow: Shadow<S, S>,
    written: WrittenPercent,
}

impl<S> ShadowBackend<S> {
    pub(crate) const fn new(shadow: Shadow<S, S>, written: Percent) -> Self {
        Self { shadow, written: WrittenPercent::new(written) }
    }

    pub(crate) const fn both(&self) -> &Shadow<S, S> {
        &self.shadow
    }

    /// Returns the store that decides.
    #[must_use]
    pub fn store(&self) -> &S {
        self.shadow.store()
    }

    /// Returns the shadow store.
    #[must_use]
    pub fn shadow_store(&self) -> &S {
        self.shadow.shadow()
    }

    /// Returns the percentage of subjects that are compared.
    #[must_use]
    pub fn percentage(&self) -> &RolloutPercentage {
        self.shadow.percentage()
    }

    /// Returns the counts of comparisons and of differences between the two stores.
    #[must_use]
    pub fn differences(&self) -> Differences {
        self.shadow.differences()
    }

    /// Sets the percentage to the percentage in the policy file if it differs from the percentage
    /// in the previous file.
    pub(crate) fn follow(&self, percent: Percent) {
        self.written.follow(self.percentage(), percent);
    }
}
