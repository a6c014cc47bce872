//! Stores that answer without a future.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::charge::ChargeId;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Charge, DecisionSource, Reading, Store, StoreError, Timestamp};

/// The most charges of a call that are prepared without an allocation.
pub(crate) const INLINE_CHARGES: usize = 6;

/// A store that answers without a future. The caller passes a list for the readings, and can reuse
/// the list for the next call.
pub trait ImmediateStore: Store {
    /// Applies charges like [`apply`](Store::apply), without a future. Replaces the content of
    /// `readings` by the readings of `charges`. Returns the component that made the readings, such
    /// as the store or one of its overflow counters.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn apply_into(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        readings: &mut Vec<Reading>,
    ) -> Result<DecisionSource, StoreError>;

    /// Makes all of the charges `planned` under the charge id `id`, or none. Otherwise like
    /// [`apply_into`](Self::apply_into).
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn charge_into(
        &self,
        now: Timestamp,
        id: ChargeId,
        planned: &[PlannedCharge],
        readings: &mut Vec<Reading>,
    ) -> Result<DecisionSource, StoreError> {
        let charges: SmallVec<[Charge<'_>; INLINE_CHARGES]> =
            planned.iter().map(|planned| planned.charge(id)).collect();
        self.apply_into(now, &charges, readings)
    }
}

impl<S: ImmediateStore> ImmediateStore for Arc<S> {
    fn apply_into(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        readings: &mut Vec<Reading>,
    ) -> Result<DecisionSource, StoreError> {
        (**self).apply_into(now, charges, readings)
    }

    fn charge_into(
        &self,
        now: Timestamp,
        id: ChargeId,
        planned: &[PlannedCharge],
        readings: &mut Vec<Reading>,
    ) -> Result<DecisionSource, StoreError> {
        (**self).charge_into(now, id, planned, readings)
    }
}
