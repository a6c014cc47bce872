//! Resets the counters of subjects.

use tollgate_core::charge::Operation;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{DecisionSource, Evaluation, Store, StoreError, Timestamp};

use super::Limiter;

impl<S: Store> Limiter<S> {
    /// Resets the counter of each limit and subject of `planned`, or none, and returns their
    /// statuses. The next charge begins a new window, and earlier receipts are void. The costs of
    /// `planned` do not matter.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer; it is then unknown whether the counters were
    /// reset.
    pub async fn forget_at(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
    ) -> Result<Evaluation, StoreError> {
        let readings = self.apply(now, planned, |_| Operation::Reset).await?;
        match readings.source() {
            DecisionSource::Store | DecisionSource::DenyCache | DecisionSource::Overflow => {
                Ok(self.evaluate_readings(now, planned, &readings))
            }
            // A fallback does not have the store's counters.
            DecisionSource::Fallback(error) | DecisionSource::Failure(error) => Err(error),
        }
    }
}
