//! Stores that answer without a future.

use std::sync::Arc;

use tollgate_core::{Charge, DecisionSource, Reading, Store, StoreError, Timestamp};

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
}
