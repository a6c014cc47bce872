//! Costs that the response reports: reserved when the request arrives, settled when it ends.

use tollgate_core::policy::Meter;
use tollgate_core::policy::outcome::Settlement;
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{Cost, Store, StoreError, Timestamp};

use super::Limiter;
use crate::receipt::Receipt;

impl<S: Store> Limiter<S> {
    /// Replaces the reserved amounts of `reserved` by the cost that each meter reports, as far as
    /// `settlement` keeps it. If a meter reports none, the reserved amount is charged. Settling
    /// again has no further effect.
    ///
    /// What the limit has no room for is charged before the next decisions of this limiter on the
    /// same subject, for at most [`MAX_UNPAID`](super::MAX_UNPAID) limits of subjects.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer; the reservation then expires as before.
    pub async fn settle_metered_at(
        &self,
        now: Timestamp,
        reserved: Receipt,
        settlement: Settlement,
        measured: impl Fn(&Meter) -> Option<Cost> + Send,
    ) -> Result<(), StoreError> {
        self.settle_shared(now, &reserved, settlement, measured).await
    }

    /// Settles a receipt that a renewal task shares. The caller settles it once.
    pub(crate) async fn settle_shared(
        &self,
        now: Timestamp,
        reserved: &Receipt,
        settlement: Settlement,
        measured: impl Fn(&Meter) -> Option<Cost> + Send,
    ) -> Result<(), StoreError> {
        let charges = reserved.measurements(settlement, measured);
        if charges.is_empty() {
            return Ok(());
        }
        let answer = self.store.apply(now, &charges).await;
        self.notify_holds(&charges, &answer);
        let readings = answer?;
        self.carry_over(now, reserved, &charges, &readings);
        Ok(())
    }

    /// Extends the reservation of `reserved`, as far as each limit allows.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer; the reservation then expires as before.
    pub async fn hold_on(&self, reserved: &Receipt) -> Result<(), StoreError> {
        let now = self.now();
        self.store.apply(now, &reserved.extensions(now.after(MAX_WINDOW))).await.map(|_| ())
    }
}
