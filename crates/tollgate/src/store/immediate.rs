//! Stores that answer at once.

use std::sync::Arc;

use tollgate_core::{Charge, DecisionSource, Reading, Store, StoreError, Timestamp};

/// A store that answers at once, into a list that the caller uses again.
pub trait ImmediateStore: Store {
    /// Applies charges like [`apply`](Store::apply), without a future. Replaces `readings` by the
    /// answer, and returns its source.
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
