//! Resets the counters of subjects.

use tollgate_core::charge::Operation;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{DecisionSource, Evaluation, Reading, Store, StoreError, Timestamp};

use super::Limiter;

impl<S: Store> Limiter<S> {
    /// Resets the counter of each limit and subject of `planned`, or of none, and returns the
    /// statuses of the subjects, with the limits of overrides in force at `now`. Leaves out the
    /// statuses of limits that an override lifts. The next charge begins a new window, and earlier
    /// receipts are void. The costs of `planned` have no effect. Also cancels the costs that this
    /// limiter [carried over](Self::settle_metered_at), even if the store does not answer. Other
    /// nodes keep theirs.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The caller then does not know whether the
    /// counters were reset.
    pub async fn forget_at(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
    ) -> Result<Evaluation, StoreError> {
        // A cost that another request charges now must not be charged after the reset. The request
        // charges nothing if the cost was cancelled before, and otherwise made its reservation
        // before the reset, which makes the reservation void.
        self.unpaid.cancel(planned);
        let readings = self.apply(now, planned, |_| Operation::Reset).await?;
        match readings.source() {
            DecisionSource::Store | DecisionSource::DenyCache | DecisionSource::Overflow => {
                // A settlement may have added a cost while the store executed the reset.
                self.unpaid.cancel(planned);
                Ok(self.evaluate_reset(now, planned, &readings))
            }
            // A fallback does not have the store's counters, so it cannot reset them.
            DecisionSource::Fallback(error) | DecisionSource::Failure(error) => Err(error),
        }
    }

    fn evaluate_reset(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        readings: &[Reading],
    ) -> Evaluation {
        let counted = planned.iter().zip(readings).filter_map(|(planned, reading)| {
            let limit = self.counted_by(now, &planned.limit, &planned.subject)?;
            Some((PlannedCharge { limit, ..planned.clone() }, *reading))
        });
        let (planned, readings): (Vec<_>, Vec<_>) = counted.unzip();
        let mut evaluation = Evaluation::without_statuses(now);
        self.evaluate_into(now, &planned, &readings, &mut evaluation);
        evaluation
    }
}
