//! Reservations: units that are held until the cost is known.

use std::time::Duration;

use smallvec::SmallVec;
use tollgate_core::{
    Admission, ChargeId, ChargePosition, Cost, Millis, Operation, Store, StoreError, Subject,
};

use super::RateLimiter;
use super::decision::{Decision, Refused};
use super::key::Key;
use crate::receipt::new_charge_id;

/// Units that are reserved for a key until they are [settled](RateLimiter::settle). If a
/// reservation expires before it is settled, its units are returned to the key.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, RateLimiter};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let tokens = RateLimiter::per_key(Quota::per_minute(10_000).fixed_window());
/// let reservation = tokens.reserve("alice", 4_000, Duration::from_secs(60)).await?;
/// let settled = tokens.settle(reservation, 1_250).await?;
/// assert_eq!((settled.refunded(), settled.added()), (2_750, 0));
/// assert_eq!(tokens.peek("alice").await?.used(), 1_250);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a reservation holds its units until it is settled or expires"]
pub struct Reservation {
    subject: Subject,
    id: ChargeId,
    units: u64,
    positions: SmallVec<[ChargePosition; 1]>,
}

/// The result of settling a reservation.
///
/// ```
/// # use std::time::Duration;
/// # use tollgate::{Quota, RateLimiter};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let tokens = RateLimiter::per_key(Quota::per_minute(100).fixed_window());
/// let reservation = tokens.reserve("alice", 10, Duration::from_secs(60)).await?;
/// assert_eq!(tokens.settle(reservation, 30).await?.added(), 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    refunded: u64,
    added: u64,
    was_held: bool,
}

impl Reservation {
    /// Returns the reserved units.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_minute(100));
    /// assert_eq!(limiter.reserve("a", 10, Duration::from_secs(5)).await?.units(), 10);
    /// # Ok::<(), tollgate::Refused>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.units
    }
}

impl Settled {
    /// Returns how many units the key got back because the cost was below the reserved units.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_minute(100).fixed_window());
    /// let reservation = limiter.reserve("a", 10, Duration::from_secs(5)).await?;
    /// assert_eq!(limiter.settle(reservation, 4).await?.refunded(), 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub const fn refunded(&self) -> u64 {
        self.refunded
    }

    /// Returns how many units were charged in addition because the cost was above the reserved
    /// units: as many as the quota and its [overdraft](crate::Quota::overdraft) allow.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_minute(12).fixed_window());
    /// let reservation = limiter.reserve("a", 10, Duration::from_secs(5)).await?;
    /// assert_eq!(limiter.settle(reservation, 40).await?.added(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub const fn added(&self) -> u64 {
        self.added
    }

    /// Returns whether the reservation was still held on every limit when it was settled. Settling
    /// an expired reservation changes nothing.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_minute(12).fixed_window());
    /// let reservation = limiter.reserve("a", 10, Duration::from_secs(5)).await?;
    /// assert!(limiter.settle(reservation, 10).await?.was_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub const fn was_held(&self) -> bool {
        self.was_held
    }
}

impl<S: Store + 'static> RateLimiter<S> {
    /// Reserves `units` of `key` for the time `hold_for`, but for at most five minutes. If a cost
    /// is known only at the end, reserve an estimate and [settle](Self::settle) the cost.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_minute(100));
    /// let reservation = limiter.reserve("alice", 60, Duration::from_secs(30)).await?;
    /// assert!(limiter.reserve("alice", 60, Duration::from_secs(30)).await.is_err());
    /// # drop(reservation);
    /// # Ok::<(), tollgate::Refused>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Refused`] if the units do not fit.
    pub async fn reserve<K: Key + ?Sized + Sync>(
        &self,
        key: &K,
        units: u64,
        hold_for: Duration,
    ) -> Result<Reservation, Refused> {
        let (now, subject) = (self.clock.now(), self.subject(key));
        let hold_for = Millis::new(u64::try_from(hold_for.as_millis()).unwrap_or(u64::MAX));
        let (cost, id, until) = (Cost::up_to(units), new_charge_id(), now.after(hold_for));
        let operation = Operation::Reserve { cost, id, until };
        let result = self.store.apply(now, &self.charges(&subject, |_| operation)).await;
        match self.decide(now, operation, result) {
            Decision::Admitted(admitted) => {
                let (units, positions) = (cost.get(), admitted.positions);
                Ok(Reservation { subject, id, units, positions })
            }
            Decision::Refused(refused) => Err(refused),
        }
    }

    /// Replaces the reserved units by `cost` and ends the reservation. A cost of zero returns all
    /// reserved units.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_minute(100).fixed_window());
    /// let reservation = limiter.reserve("alice", 60, Duration::from_secs(30)).await?;
    /// limiter.settle(reservation, 25).await?;
    /// assert_eq!(limiter.peek("alice").await?.remaining(), 75);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The reservation then expires.
    pub async fn settle(&self, reservation: Reservation, cost: u64) -> Result<Settled, StoreError> {
        let Reservation { subject, id, positions, .. } = reservation;
        if positions.is_empty() {
            return Ok(Settled { refunded: 0, added: 0, was_held: false });
        }
        let cost = Cost::up_to(cost);
        let charges = self.charges(&subject, |index| {
            let position = positions.get(index).copied().unwrap_or(ChargePosition(0));
            Operation::Settle { id, position, cost }
        });
        let readings = self.store.apply(self.clock.now(), &charges).await?;
        Ok(Settled {
            refunded: readings.iter().map(|reading| reading.refunded).max().unwrap_or(0),
            added: readings.iter().map(|reading| reading.added).max().unwrap_or(0),
            was_held: readings.iter().all(|reading| reading.admission == Admission::Now),
        })
    }
}
