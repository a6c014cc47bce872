//! A limit: a named quota with its window and algorithm.

mod candidate;
mod change;
mod lifetime;
mod mode;
mod predecessor;
mod quota;
mod quota_value;
mod size;

use alloc::boxed::Box;
use alloc::sync::Arc;

pub use change::{Generation, OnChange};
pub use mode::{LeaseSpan, LimitMode};
use predecessor::Predecessor;

pub use crate::cost::Cost;
pub use crate::limit_error::{LimitError, MAX_NAME};

use crate::algo::{Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket};
use crate::limit_error::check_name;
use crate::percent::Percent;
use crate::refusal::RefusalSettings;
use crate::reservation::ReservationTerms;
use crate::status_set::StatusSet;
use crate::time::{DEFAULT_SKEW_MAX, Millis};

/// The algorithm that a limit counts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// A fixed window: counts from zero in every window.
    FixedWindow(FixedWindow),
    /// A sliding window: counts the charges in the blocks of the last window.
    SlidingWindow(SlidingWindow),
    /// An estimate of a sliding window from the counts of two neighbouring periods.
    TwoBucket(TwoBucket),
    /// A sliding log: stores the exact time of every counted charge.
    SlidingLog(SlidingLog),
    /// A token bucket: refills at a constant rate, up to a burst.
    TokenBucket(TokenBucket),
    /// A concurrency limit: counts requests in flight.
    Concurrency(Concurrency),
}

/// Whether response headers report a limit to clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// The limit is reported in headers and by the status endpoint.
    #[default]
    Visible,
    /// The limit is enforced but not reported in headers. A refusal still names the limit.
    Hidden,
}

/// Whether refused charges count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusals {
    /// A refused charge does not change the limit.
    #[default]
    Free,
    /// A refused charge counts: a client that keeps retrying stays refused.
    Counted,
}

/// The unit that a limit counts, as it is reported to clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Requests, or points that represent requests.
    #[default]
    Requests,
    /// Bytes of message content: the unit `content-bytes` of the IETF draft on rate limits.
    ContentBytes,
    /// Requests in flight.
    ConcurrentRequests,
}

/// A named limit: algorithm, quota and window, and the properties that clients see.
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
    /// The time by which the window became shorter when this limit replaced an older one. The store
    /// can still contain state of the longer window.
    shortened_by: Millis,
    /// The share of subjects for which the limit is enforced.
    enforced: Percent,
    candidate: Option<Arc<Self>>,
    on_change: OnChange,
    predecessor: Option<Predecessor>,
    mode: LimitMode,
    /// The statuses of the responses that the limit counts. `None` means that every response
    /// counts.
    counted: Option<Arc<StatusSet>>,
    refusal: Option<Arc<RefusalSettings>>,
    /// The value of the request that selected the quota, such as a plan.
    quota_value: Option<Arc<str>>,
}

impl Limit {
    /// Creates a visible limit that does not count refusals. Clients see its name.
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
            counted: None,
            refusal: None,
            quota_value: None,
        })
    }

    /// Sets the resource: the name that clients see. Several limits can have the same resource.
    ///
    /// # Errors
    /// [`LimitError::Name`], as for the limit's own name.
    pub fn with_resource(mut self, resource: &str) -> Result<Self, LimitError> {
        check_name(resource)?;
        self.resource = resource.into();
        Ok(self)
    }

    /// Sets whether the limit is reported to clients.
    #[must_use]
    pub fn with_visibility(mut self, visibility: Visibility) -> Self {
        self.visibility = visibility;
        self
    }

    /// Sets whether refused charges count.
    ///
    /// # Errors
    /// [`LimitError::RefusalsNotInFlight`] for a concurrency limit, because a refused request never
    /// runs. [`LimitError::LeasedCountsRefusals`] for a leased limit.
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

    /// Sets the unit that is reported to clients.
    #[must_use]
    pub fn with_unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Sets the allowed clock skew. Stored state that is further in the future is treated as
    /// missing.
    #[must_use]
    pub fn with_skew_max(mut self, skew_max: Millis) -> Self {
        self.skew_max = skew_max;
        self
    }

    /// Sets the terms of reservations.
    ///
    /// # Errors
    /// [`LimitError`] for a concurrency limit, because permits take the place of reservations; for
    /// an overdraft of a limit that cannot be overdrawn; and for a number out of range.
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

    /// Returns the limit with another algorithm, other reservation terms, and the same counters.
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

    /// Returns the name of the limit, which is unique in its policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a digest of the limit's name, for stores that keep hashes instead of names. The
    /// digest is computed once, when the limit is created.
    ///
    /// The digest is not keyed, because names come from the policy and never from clients. With 128
    /// bits, the probability of an accidental collision is negligible.
    #[inline]
    #[must_use]
    pub const fn name_digest(&self) -> u128 {
        self.name_digest
    }

    /// Returns the generation of the limit's counters. Returns `None` if the name alone identifies
    /// the counters.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// Returns a digest of the name and the [generation](Self::generation), computed like
    /// [`name_digest`](Self::name_digest). Limits that share counters have the same digest.
    #[inline]
    #[must_use]
    pub const fn state_digest(&self) -> u128 {
        self.state_digest
    }

    /// Returns the name that clients see.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Returns the algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Returns whether the limit is reported to clients.
    #[must_use]
    pub const fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Returns whether refused charges count.
    #[must_use]
    pub const fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Returns whether the limit must be charged on arrival: a concurrency limit, because a request
    /// holds its permit while it runs, or a limit that counts refusals, which happen on arrival.
    #[must_use]
    pub fn is_charged_on_arrival(&self) -> bool {
        self.refusals == Refusals::Counted || matches!(self.algorithm, Algorithm::Concurrency(_))
    }

    /// Sets the statuses of the responses that the limit counts. After any other response, the
    /// charge is refunded.
    #[must_use]
    pub fn with_counted(mut self, statuses: StatusSet) -> Self {
        self.counted = Some(Arc::new(statuses));
        self
    }

    /// Returns the statuses of the responses that the limit counts, or `None` if every response
    /// counts.
    #[must_use]
    pub const fn counted(&self) -> Option<&Arc<StatusSet>> {
        self.counted.as_ref()
    }

    /// Sets the response to requests that this limit refuses.
    #[must_use]
    pub fn with_refusal(mut self, refusal: RefusalSettings) -> Self {
        self.refusal = Some(Arc::new(refusal));
        self
    }

    /// Returns the response to requests that this limit refuses. `None` means that the response of
    /// the rule is used.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Arc<RefusalSettings>> {
        self.refusal.as_ref()
    }

    /// Returns the unit that clients see.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the allowed clock skew: how far in the future stored state can be.
    #[must_use]
    pub const fn skew_max(&self) -> Millis {
        self.skew_max
    }

    /// Returns how far in the future the start of a stored window or block can be: the allowed
    /// clock skew plus the time by which the window was shortened since the state was written.
    #[must_use]
    pub const fn skew_tolerance(&self) -> Millis {
        Millis::new(self.skew_max.get().saturating_add(self.shortened_by.get()))
    }

    /// Returns the terms of reservations. A concurrency limit uses permits and ignores these terms.
    #[inline]
    #[must_use]
    pub const fn reservation_terms(&self) -> &ReservationTerms {
        &self.reservation
    }
}

/// Computes the 128-bit Fowler-Noll-Vo hash, variant 1a (RFC 9923).
const fn fnv_1a(bytes: &[u8]) -> u128 {
    fnv_1a_from(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, bytes)
}

/// Continues the Fowler-Noll-Vo hash `hash` with `bytes`, and returns the new hash.
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

    #[test]
    fn the_digest_is_the_published_one() {
        assert_eq!(fnv_1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv_1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv_1a(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
