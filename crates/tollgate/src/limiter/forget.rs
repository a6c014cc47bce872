//! Subjects that start afresh.

use tollgate_core::charge::Ask;
use tollgate_core::policy::Planned;
use tollgate_core::{Source, Store, StoreError, Timestamp, Verdict};

use super::Limiter;
use super::judge::verdict;

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
        planned: &[Planned],
    ) -> Result<Verdict, StoreError> {
        let readings = self.ask(now, planned, |_| Ask::Forget).await?;
        match readings.source() {
            Source::Store | Source::Remembered => Ok(verdict(now, planned, &readings)),
            // What stands in for the store holds nothing of what the store does.
            Source::Fallback(error) | Source::Failure(error) => Err(error),
        }
    }
}
