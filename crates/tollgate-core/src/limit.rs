//! A limit: one named rule of how much, in what time, counted how.

mod candidate;
mod change;
mod mode;
mod predecessor;

use alloc::boxed::Box;
use alloc::sync::Arc;

pub use change::{Generation, OnChange};
pub use mode::{LeaseSpan, LimitMode};
use predecessor::Predecessor;

pub use crate::cost::Cost;
pub use crate::limit_error::{LimitError, MAX_NAME};

use crate::algo::{Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket};
use crate::algo::{concurrency, sliding_log, sliding_window};
use crate::limit_error::check_name;
use crate::percent::Percent;
use crate::reservation::ReservationTerms;
use crate::time::{DEFAULT_SKEW_MAX, Millis};

/// How a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Counts from zero in every window.
    FixedWindow(FixedWindow),
    /// Counts what fell into the blocks of the last window.
    SlidingWindow(SlidingWindow),
    /// Estimates a sliding window from two calendar buckets.
    TwoBucket(TwoBucket),
    /// Keeps the exact time of every admitted charge.
    SlidingLog(SlidingLog),
    /// Refills evenly, up to a burst.
    TokenBucket(TokenBucket),
    /// Counts what is in flight.
    Concurrency(Concurrency),
}

impl Algorithm {
    /// The bytes that the lists in the state of one subject come to at most, in a store in this
    /// process.
    #[must_use]
    pub const fn largest_state(&self) -> u64 {
        match self {
            Self::FixedWindow(_) | Self::TwoBucket(_) | Self::TokenBucket(_) => 0,
            Self::SlidingWindow(limit) => {
                limit.blocks() * size_of::<sliding_window::Block>() as u64
            }
            Self::SlidingLog(limit) => limit.quota() * size_of::<sliding_log::Entry>() as u64,
            Self::Concurrency(limit) => limit.quota() * size_of::<concurrency::Permit>() as u64,
        }
    }
}

/// Whether clients are told of a limit in headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// Told in headers and in the status endpoint.
    #[default]
    Visible,
    /// Enforced without a word in headers; a refusal still names it.
    Hidden,
}

/// Whether refused charges count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusals {
    /// A refused charge leaves the limit as it was.
    #[default]
    Free,
    /// A refused charge counts: who keeps hammering stays out.
    Counted,
}

/// What a limit is measured in, as clients are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Requests, or points that stand for them.
    #[default]
    Requests,
    /// Bytes of content.
    ContentBytes,
    /// Requests in flight.
    ConcurrentRequests,
}

/// One named rule: algorithm, quota and window, and what clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    name: Box<str>,
    name_digest: u128,
    generation: Option<Generation>,
    state_digest: u128,
    resource: Box<str>,
    algorithm: Algorithm,
    visibility: Visibility,
    refusals: Refusals,
    unit: Unit,
    skew_max: Millis,
    reservation: ReservationTerms,
    /// How much longer its window was when it wrote what may still be stored.
    shortened_by: Millis,
    /// Of whose subjects it refuses anybody.
    enforced: Percent,
    candidate: Option<Arc<Self>>,
    on_change: OnChange,
    predecessor: Option<Predecessor>,
    mode: LimitMode,
}

impl Limit {
    /// A visible limit that does not count refusals; its resource is its name.
    ///
    /// # Errors
    /// [`LimitError::Name`] unless the name is 1 to 64 bytes of `a-z A-Z 0-9 _ - .`
    pub fn new(name: &str, algorithm: Algorithm) -> Result<Self, LimitError> {
        check_name(name)?;
        let unit = match algorithm {
            Algorithm::Concurrency(_) => Unit::ConcurrentRequests,
            _ => Unit::Requests,
        };
        let name_digest = fnv_1a(name.as_bytes());
        Ok(Self {
            name: name.into(),
            name_digest,
            generation: None,
            state_digest: name_digest,
            resource: name.into(),
            algorithm,
            visibility: Visibility::default(),
            refusals: Refusals::default(),
            unit,
            skew_max: DEFAULT_SKEW_MAX,
            reservation: ReservationTerms::default(),
            shortened_by: Millis::ZERO,
            enforced: Percent::ALL,
            candidate: None,
            on_change: OnChange::default(),
            predecessor: None,
            mode: LimitMode::default(),
        })
    }

    /// Sets the name under which clients see the limit, shared by limits that stand for each other.
    ///
    /// # Errors
    /// [`LimitError::Name`], as for the limit's own name.
    pub fn with_resource(mut self, resource: &str) -> Result<Self, LimitError> {
        check_name(resource)?;
        self.resource = resource.into();
        Ok(self)
    }

    /// Sets whether clients are told.
    #[must_use]
    pub fn with_visibility(mut self, visibility: Visibility) -> Self {
        self.visibility = visibility;
        self
    }

    /// Sets whether refused charges count.
    ///
    /// # Errors
    /// [`LimitError::RefusalsNotInFlight`] for a concurrency limit: what was refused never ran.
    /// [`LimitError::LeasedCountsRefusals`] for one that is leased.
    pub fn with_refusals(mut self, refusals: Refusals) -> Result<Self, LimitError> {
        if refusals == Refusals::Counted && matches!(self.algorithm, Algorithm::Concurrency(_)) {
            return Err(LimitError::RefusalsNotInFlight);
        }
        if refusals == Refusals::Counted && self.mode == LimitMode::Leased {
            return Err(LimitError::LeasedCountsRefusals);
        }
        self.refusals = refusals;
        Ok(self)
    }

    /// Sets the unit that clients are told.
    #[must_use]
    pub fn with_unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Sets how far in the future stored state may lie before it counts as no state.
    #[must_use]
    pub fn with_skew_max(mut self, skew_max: Millis) -> Self {
        self.skew_max = skew_max;
        self
    }

    /// Sets how it may be reserved.
    ///
    /// # Errors
    /// [`LimitError`] for a concurrency limit, whose leases are its reservations; for an overdraft
    /// of a limit that counts no debts; and for a number out of range.
    pub fn with_reservation_terms(
        mut self,
        reservation: ReservationTerms,
    ) -> Result<Self, LimitError> {
        match self.algorithm {
            Algorithm::Concurrency(_) => return Err(LimitError::PermitsAreReservations),
            Algorithm::TokenBucket(_) | Algorithm::TwoBucket(_) if reservation.overdraft > 0 => {
                return Err(LimitError::NoOverdraft);
            }
            _ => reservation.check(self.capacity())?,
        }
        self.reservation = reservation;
        Ok(self)
    }

    /// The same limit, counted and reserved another way, with the counters that it has.
    pub(crate) fn with_algorithm(
        mut self,
        algorithm: Algorithm,
        reservation: ReservationTerms,
    ) -> Self {
        if algorithm.not_leasable().is_some() {
            self.mode = LimitMode::Exact;
        }
        self.algorithm = algorithm;
        self.reservation = reservation;
        self
    }

    /// The same limit with another quota, counted where it is counted now: what was used stays used,
    /// and what runs ends when it was to end. A token bucket holds `burst`; without one what it held
    /// before, or the new quota if that was the old one. Others have no burst. Nothing is tried of it:
    /// it has no candidate, and is enforced for everybody.
    ///
    /// # Errors
    /// [`LimitError`] for a quota that the algorithm cannot count.
    pub fn with_quota(&self, quota: u64, burst: Option<u64>) -> Result<Self, LimitError> {
        let algorithm = match &self.algorithm {
            Algorithm::FixedWindow(limit) => {
                Algorithm::FixedWindow(FixedWindow::new(quota, limit.window(), limit.anchor())?)
            }
            Algorithm::SlidingWindow(limit) => {
                let limit = SlidingWindow::new(quota, limit.window(), limit.precision())?;
                Algorithm::SlidingWindow(limit)
            }
            Algorithm::TwoBucket(limit) => {
                Algorithm::TwoBucket(TwoBucket::new(quota, limit.window())?)
            }
            Algorithm::SlidingLog(limit) => {
                Algorithm::SlidingLog(SlidingLog::new(quota, limit.window())?)
            }
            Algorithm::TokenBucket(limit) => {
                let held = if limit.burst() == limit.quota() { quota } else { limit.burst() };
                let burst = burst.unwrap_or(held);
                Algorithm::TokenBucket(TokenBucket::new(quota, limit.window(), burst)?)
            }
            Algorithm::Concurrency(limit) => {
                Algorithm::Concurrency(Concurrency::new(quota, limit.permit_ttl())?)
            }
        };
        let limit = self.clone().without_candidate().with_algorithm(algorithm, self.reservation);
        limit.reservation.check(limit.capacity())?;
        Ok(limit)
    }

    /// The name, unique in its policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A digest of the name, made once, for stores that keep hashes in place of names.
    ///
    /// It is not keyed. Names come from the policy, never from clients: two of them meet by chance
    /// alone, which is nothing at 128 bits.
    #[inline]
    #[must_use]
    pub const fn name_digest(&self) -> u128 {
        self.name_digest
    }

    /// Which counters under its name are its own, where the name alone does not say.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// A digest of the name and the [generation](Self::generation), as
    /// [`name_digest`](Self::name_digest) is one of the name: equal where limits share counters.
    #[inline]
    #[must_use]
    pub const fn state_digest(&self) -> u128 {
        self.state_digest
    }

    /// The name under which clients see it.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// How it counts.
    #[must_use]
    pub const fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Whether clients are told.
    #[must_use]
    pub const fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Whether refused charges count.
    #[must_use]
    pub const fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Whether a charge on it cannot wait for the request's answer: a lease is held while the
    /// request runs, and a refusal can only be counted where the charge is made.
    #[must_use]
    pub fn is_charged_on_arrival(&self) -> bool {
        self.refusals == Refusals::Counted || matches!(self.algorithm, Algorithm::Concurrency(_))
    }

    /// The unit that clients are told.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// How far in the future stored state may lie, as clocks disagree.
    #[must_use]
    pub const fn skew_max(&self) -> Millis {
        self.skew_max
    }

    /// How far in the future stored state is believed that this limit's window does not explain:
    /// as clocks disagree, and as it may have been written when the window was longer.
    #[must_use]
    pub const fn skew_tolerance(&self) -> Millis {
        Millis::new(self.skew_max.get().saturating_add(self.shortened_by.get()))
    }

    /// How it may be reserved. Of a concurrency limit nothing of it applies but leases.
    #[inline]
    #[must_use]
    pub const fn reservation_terms(&self) -> &ReservationTerms {
        &self.reservation
    }

    /// The most that can be used at one moment: the quota, or the burst of a token bucket.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match &self.algorithm {
            Algorithm::FixedWindow(limit) => limit.quota(),
            Algorithm::SlidingWindow(limit) => limit.quota(),
            Algorithm::TwoBucket(limit) => limit.quota(),
            Algorithm::SlidingLog(limit) => limit.quota(),
            Algorithm::TokenBucket(limit) => limit.burst(),
            Algorithm::Concurrency(limit) => limit.quota(),
        }
    }

    /// The time in which an unused limit is whole again: the window, the time to fill an empty
    /// bucket, or the lease.
    #[must_use]
    pub const fn window(&self) -> Millis {
        match &self.algorithm {
            Algorithm::FixedWindow(limit) => limit.window(),
            Algorithm::SlidingWindow(limit) => limit.window(),
            Algorithm::TwoBucket(limit) => limit.window(),
            Algorithm::SlidingLog(limit) => limit.window(),
            Algorithm::TokenBucket(limit) => limit.fill_time(),
            Algorithm::Concurrency(limit) => limit.permit_ttl(),
        }
    }
}

/// The hash of Fowler, Noll and Vo (RFC 9923), variant 1a, 128 bits wide.
const fn fnv_1a(bytes: &[u8]) -> u128 {
    fnv_1a_from(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, bytes)
}

/// The hash of what `hash` was made of, and then `bytes`.
const fn fnv_1a_from(mut hash: u128, mut bytes: &[u8]) -> u128 {
    while let [byte, rest @ ..] = bytes {
        hash = (hash ^ *byte as u128).wrapping_mul((1 << 88) + 0x13b);
        bytes = rest;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algo::Anchor;

    #[test]
    fn another_quota_is_counted_in_the_same_place() {
        let minute = Millis::from_secs(60);
        let algorithms = [
            Algorithm::FixedWindow(FixedWindow::new(5, minute, Anchor::Calendar).unwrap()),
            Algorithm::SlidingWindow(SlidingWindow::new(5, minute, minute).unwrap()),
            Algorithm::TwoBucket(TwoBucket::new(5, minute).unwrap()),
            Algorithm::SlidingLog(SlidingLog::new(5, minute).unwrap()),
            Algorithm::TokenBucket(TokenBucket::new(5, minute, 5).unwrap()),
            Algorithm::Concurrency(Concurrency::new(5, minute).unwrap()),
        ];
        for on_change in [OnChange::Keep, OnChange::Restart] {
            for algorithm in algorithms {
                let limit = Limit::new("core", algorithm).unwrap().with_on_change(on_change);
                let other = limit.with_quota(7, None).unwrap();
                assert_eq!(other.capacity(), 7, "{algorithm:?}");
                assert_eq!(other.state_digest(), limit.state_digest());
                assert_eq!(other.generation(), limit.generation());
                assert!(limit.with_quota(0, None).is_err());
                assert_eq!(other.with_quota(5, None).unwrap(), limit);
            }
        }
        let bucket = TokenBucket::new(5, minute, 50).unwrap();
        let bucket = Limit::new("core", Algorithm::TokenBucket(bucket)).unwrap();
        assert_eq!(bucket.with_quota(7, None).unwrap().capacity(), 50);
        assert_eq!(bucket.with_quota(7, Some(9)).unwrap().capacity(), 9);
    }

    #[test]
    fn the_digest_is_the_published_one() {
        assert_eq!(fnv_1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv_1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv_1a(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
