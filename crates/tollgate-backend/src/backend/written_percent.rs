//! Detects when a reload finds another percentage in the policy file.

use std::sync::atomic::{AtomicU16, Ordering};

use tollgate::model::Percent;
use tollgate::rollout_percentage::RolloutPercentage;

/// The percentage in the last policy file. If a reload finds the same percentage, a percentage that
/// an administrator has set since the last reload stays in force.
#[derive(Debug)]
pub(crate) struct WrittenPercent(AtomicU16);

impl WrittenPercent {
    pub(crate) const fn new(percent: Percent) -> Self {
        Self(AtomicU16::new(percent.parts()))
    }

    /// Sets `percentage` to `percent` if the previous file had another value. Returns whether the
    /// previous file had another value.
    pub(crate) fn follow(&self, percentage: &RolloutPercentage, percent: Percent) -> bool {
        let is_new = self.0.swap(percent.parts(), Ordering::Relaxed) != percent.parts();
        if is_new {
            percentage.set(percent);
        }
        is_new
    }
}
