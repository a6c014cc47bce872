//! Subjects that start afresh.

use tollgate_core::charge::Operation;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{DecisionSource, Evaluation, Store, StoreError, Timestamp};

use super::Limiter;
use super::judge::evaluate_readings;

impl<S: Store> Limiter<S> {
    /// Forgets what each subject of `planned` used of its limit: the next charge starts afresh, and
    /// receipts of what was forgotten are void. All of them are forgotten or none is. Answers how
    /// they stand after it; what they would cost does not matter.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer; it is not known then whether it forgot.
    pub async fn forget_at(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
    ) -> Result<Evaluation, StoreError> {
        let readings = self.query(now, planned, |_| Operation::Reset).await?;
        match readings.source() {
            DecisionSource::Store | DecisionSource::DenyCache => {
                Ok(evaluate_readings(now, planned, &readings))
            }
            // What stands in for the store holds nothing of what the store does.
            DecisionSource::Fallback(error) | DecisionSource::Failure(error) => Err(error),
        }
    }
}
