//! Costs that the response reports. The units are reserved when the request arrives, and settled
//! when the request ends.

use tollgate_core::policy::Meter;
use tollgate_core::policy::outcome::Settlement;
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{Cost, Store, StoreError, Timestamp};

use super::Limiter;
use crate::receipt::Receipt;

impl<S: Store> Limiter<S> {
    /// Settles the reservation of `reserved`: replaces each reserved amount by the cost that
    /// `measured` returns for its meter. Only the units that remain charged after a response with
    /// the effect `settlement` are charged. If `measured` returns `None`, the reserved amount is
    /// charged. Settling the same receipt again has no further effect.
    ///
    /// A cost that does not fit into the limit is carried over: this limiter charges the rest
    /// before its next decisions on the same subject, and forgets the rest after as many windows as
    /// it takes to pay it. A limit that could not refuse the request
    /// carries over no cost: a candidate, or a limit of a rule in shadow mode. A node carries over
    /// costs for at most [`MAX_UNPAID`](super::MAX_UNPAID) pairs of a limit and a subject.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The reservation then expires at its previous
    /// end.
    pub async fn settle_metered_at(
        &self,
        now: Timestamp,
        reserved: Receipt,
        settlement: Settlement,
        measured: impl Fn(&Meter) -> Option<Cost> + Send,
    ) -> Result<(), StoreError> {
        self.settle_shared(now, &reserved, settlement, measured).await
    }

    /// Settles a receipt that is shared with a renewal task. The caller must settle the receipt
    /// only once.
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

    /// Extends the reservation of `reserved`. On each limit, the reservation gets the latest end
    /// that the limit allows.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The reservation then expires at its previous
    /// end.
    pub async fn hold_on(&self, reserved: &Receipt) -> Result<(), StoreError> {
        let now = self.now();
        self.store.apply(now, &reserved.extensions(now.after(MAX_WINDOW))).await.map(|_| ())
    }
}
