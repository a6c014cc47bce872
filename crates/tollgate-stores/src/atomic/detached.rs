//! Calls that continue in their own task if their caller stops waiting.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tollgate::trace::instrument;
use tollgate_core::{Admission, Algorithm, Charge, Readings, StoreError, Timestamp};

use super::Partitions;
use super::span::{is_charge, span};
use crate::owned_charge::OwnedCharge;

/// A call that owns everything that it needs.
pub(super) struct DetachedCall<H: Partitions + 'static> {
    pub(super) partitions: Arc<H>,
    pub(super) unrefunded: Arc<AtomicU64>,
    pub(super) now: Timestamp,
    pub(super) charges: Vec<OwnedCharge>,
}

/// The answer to a detached call. If the caller stops waiting and does not take the readings, the
/// drop of this value releases the permits of the call.
struct Answer<H: Partitions + 'static> {
    call: DetachedCall<H>,
    readings: Option<Result<Readings, StoreError>>,
    runtime: Handle,
    /// Counts the call until its permits are released.
    held: Option<OwnedSemaphorePermit>,
}

/// Returns whether `charge` takes a permit, which the caller must release.
pub(super) fn takes_permit(charge: &Charge<'_>) -> bool {
    matches!(charge.limit.algorithm(), Algorithm::Concurrency(_)) && is_charge(charge)
}

impl<H: Partitions + 'static> DetachedCall<H> {
    /// Makes the call in a task of `runtime`. The task continues if this future is dropped. `held`
    /// is dropped when the call has ended and its permits are claimed or released.
    pub(super) async fn run(
        self,
        runtime: Handle,
        held: OwnedSemaphorePermit,
    ) -> Result<Readings, StoreError> {
        let of_answer = runtime.clone();
        let task = runtime.spawn(instrument(async move {
            let readings = Some(self.apply(&self.charges).await);
            Answer { call: self, readings, runtime: of_answer, held: Some(held) }
        }));
        let mut answer = task.await.map_err(|_| StoreError::Unavailable)?;
        answer.readings.take().unwrap_or(Err(StoreError::Unavailable))
    }

    /// Applies `charges` at all of their partitions.
    pub(super) async fn apply(&self, charges: &[OwnedCharge]) -> Result<Readings, StoreError> {
        let charges: Vec<_> = charges.iter().map(OwnedCharge::as_charge).collect();
        span(&*self.partitions, self.now, &charges, &self.unrefunded).await
    }

    /// Returns the charges that release the permits of this call, which the store admitted.
    fn releases(&self, readings: &Readings) -> Vec<OwnedCharge> {
        let charges = || self.charges.iter().zip(readings.iter());
        let is_admitted = charges().all(|(charge, reading)| {
            !is_charge(&charge.as_charge()) || reading.admission == Admission::Now
        });
        let release = |(charge, reading): (&OwnedCharge, &tollgate_core::Reading)| {
            let charge = charge.as_charge();
            let operation = charge.operation.inverse(reading.position)?;
            takes_permit(&charge).then(|| OwnedCharge::new(&Charge { operation, ..charge }))
        };
        if is_admitted { charges().filter_map(release).collect() } else { Vec::new() }
    }
}

impl<H: Partitions + 'static> Drop for Answer<H> {
    fn drop(&mut self) {
        let Some(Ok(readings)) = self.readings.take() else { return };
        let charges = self.call.releases(&readings);
        if charges.is_empty() {
            return;
        }
        let (partitions, unrefunded) =
            (Arc::clone(&self.call.partitions), Arc::clone(&self.call.unrefunded));
        let release = DetachedCall { partitions, unrefunded, now: self.call.now, charges };
        let held = self.held.take();
        // If the store does not answer, the permits expire.
        self.runtime.spawn(instrument(async move {
            let _held = held;
            let _ = release.apply(&release.charges).await;
        }));
    }
}
