//! Resets the counters of subjects.

use tollgate_core::charge::Operation;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{DecisionSource, Evaluation, Reading, Store, StoreError, Timestamp};

use super::Limiter;
use super::evaluate::blocked_status;
use crate::overrides::ResolvedOverride;

impl<S: Store> Limiter<S> {
    /// Resets the counter of each limit and subject of `planned`, or of none, and returns the
    /// statuses of the subjects, with the limits of overrides in force at `now`. A subject
    /// that an override blocks remains blocked. Leaves out the statuses of limits that an override
    /// lifts. The next charge begins a new window, and earlier receipts are void. The costs of
    /// `planned` have no effect. Also cancels the costs that this limiter
    /// [carried over](Self::settle_metered_at), even if the store does not answer. Other nodes keep
    /// theirs.
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
        let (mut shown, mut kept, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        for (one, reading) in planned.iter().zip(readings) {
            let resolved = self.overrides.resolve(&one.limit, &one.subject, &self.key, now);
            let mut one = one.clone();
            match resolved.map(|(resolved, _)| resolved) {
                Some(ResolvedOverride::Unlimited) => continue,
                Some(ResolvedOverride::Blocked(until)) => {
                    blocked.push((shown.len(), blocked_status(now, until, &one)));
                }
                Some(ResolvedOverride::Limit(limit)) => one.limit = limit,
                Some(ResolvedOverride::Counted) | None => {}
            }
            shown.push(one);
            kept.push(*reading);
        }
        let mut evaluation = Evaluation::without_statuses(now);
        self.evaluate_into(now, &shown, &kept, &mut evaluation);
        for (index, status) in blocked {
            evaluation.statuses[index] = status;
        }
        evaluation
    }
}
