//! Concurrency: limits the units that the requests in flight hold together.
//!
//! Source: semaphores with permits. Stripe ("Scaling your API with rate limiters", 2017) and later
//! Apache APISIX keep a set of request ids, each with its own expiry. A plain counter would leak
//! the permits of every node that dies.

use alloc::vec::Vec;

use super::{CellStep, StepTime, admission_after_expiry, keep_last};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit_error::{LimitError, check_range, check_span};
use crate::reading::{Admission, Reading, StoredState};
use crate::time::{MAX_EXACT, Millis, Timestamp};

/// The largest quota of a concurrency limit. It bounds the size of one subject's state, which has
/// an entry for each request in flight.
pub const MAX_QUOTA: u64 = 10_000;

/// A limit of at most `quota` units in flight. Each permit expires after `permit_ttl` unless it is
/// renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    quota: u64,
    permit_ttl: Millis,
}

/// The permit of one request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The id of the charge that holds the permit.
    pub id: ChargeId,
    /// The units that the request holds, never zero.
    pub used: u64,
    /// The time at which the permit expires. A renewal moves this time, and a release removes the
    /// permit.
    pub expires_at: Timestamp,
}

/// The stored state: the permits of the requests in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The permits, sorted by expiry, the earliest first.
    pub permits: Vec<Permit>,
}

impl Concurrency {
    /// Creates a limit of `quota` units in flight. A permit expires after `permit_ttl` unless it is
    /// renewed.
    ///
    /// # Errors
    /// [`LimitError`] if `quota` or `permit_ttl` is zero, if `quota` is above [`MAX_QUOTA`], or if
    /// `permit_ttl` is above [`MAX_WINDOW`](crate::time::MAX_WINDOW).
    pub fn new(quota: u64, permit_ttl: Millis) -> Result<Self, LimitError> {
        check_range(
            "quota",
            quota,
            MAX_QUOTA,
            "because the store records every request in flight",
        )?;
        check_span("permit_ttl", permit_ttl)?;
        Ok(Self { quota, permit_ttl })
    }

    /// Returns the largest number of units in flight.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// Returns the time after which a permit expires unless it is renewed.
    #[must_use]
    pub const fn permit_ttl(&self) -> Millis {
        self.permit_ttl
    }

    /// Grants the first permit of a subject, and returns the reading and the new state. The caller
    /// has checked that `cost` fits and is not a peek. The new state uses the memory of `permits`,
    /// which is empty.
    pub(crate) fn first_permit(
        &self,
        mut permits: Vec<Permit>,
        (cost, id): (Cost, ChargeId),
        now: Timestamp,
    ) -> (Reading, State) {
        let (used, expires_at) = (cost.get(), now.after(self.permit_ttl));
        permits.push(Permit { id, used, expires_at });
        let leaving = core::iter::once((used, expires_at));
        let reading = Reading {
            admission: Admission::Now,
            fits_again: admission_after_expiry(self.quota, used, cost.needed(), leaving),
            used,
            full_reset_at: expires_at,
            ..Reading::default()
        };
        (reading, State { permits })
    }

    /// Extends the permit of `id` to one `permit_ttl` from now, and returns its units. Returns
    /// `None` if there is no such permit.
    pub(crate) fn renew(&self, state: &mut State, id: ChargeId, at: StepTime) -> Option<u64> {
        let at = self.moment(&state.permits, at);
        self.index_of(state, id, at)?;
        self.prune(state, at);
        let index = state.permits.iter().position(|permit| permit.id == id)?;
        let permit = state.permits.remove(index);
        self.insert(state, Permit { expires_at: at.now.after(self.permit_ttl), ..permit });
        Some(permit.used)
    }

    /// Returns the time that the decision uses: the time of `at`, or the latest time at which one
    /// of `permits` was granted or renewed, whichever is later.
    ///
    /// A clock that lags behind the clock of an earlier decision therefore does not grant permits
    /// that expire too early, and a renewal never shortens a permit.
    fn moment(&self, permits: &[Permit], at: StepTime) -> StepTime {
        let newest = permits.iter().rfind(|permit| !self.is_from_future(permit, at));
        let granted_at = newest.map_or(Timestamp::EPOCH, |newest| {
            Timestamp::EPOCH.after(newest.expires_at.since(Timestamp::EPOCH.after(self.permit_ttl)))
        });
        StepTime { now: at.now.max(granted_at), ..at }
    }

    /// Returns the index of the permit of the charge `id` in `state`. Returns `None` if there is no
    /// such permit, or if the permit has expired.
    fn index_of(&self, state: &State, id: ChargeId, at: StepTime) -> Option<usize> {
        state.permits.iter().position(|permit| permit.id == id && self.is_held(permit, at))
    }

    /// Returns whether a permit is valid: it has not expired and is not from too far in the future.
    fn is_held(&self, permit: &Permit, at: StepTime) -> bool {
        at.now < permit.expires_at && !self.is_from_future(permit, at)
    }

    /// Returns whether the permit expires so late that no node with a correct clock can have
    /// granted it.
    fn is_from_future(&self, permit: &Permit, at: StepTime) -> bool {
        permit.expires_at > at.now.after(self.permit_ttl).after(at.skew_max)
    }

    /// Removes the permits that have expired, and those that are from too far in the future.
    fn prune(&self, state: &mut State, at: StepTime) {
        state.permits.retain(|permit| self.is_held(permit, at));
    }

    /// Inserts a permit, so that the permits stay sorted by expiry. A new permit normally expires
    /// last and becomes the last of the list. It expires before older permits only if the limit's
    /// `permit_ttl` was shortened.
    fn insert(&self, state: &mut State, permit: Permit) {
        let index = state.permits.partition_point(|other| other.expires_at <= permit.expires_at);
        state.permits.insert(index, permit);
    }
}

impl CellStep for Concurrency {
    type State = State;

    fn read(&self, state: Option<&State>, cost: Cost, at: StepTime) -> Reading {
        let permits = state.map_or(&[][..], |state| &state.permits);
        let asked_at = at.now;
        let at = self.moment(permits, at);
        let held = || permits.iter().filter(|permit| self.is_held(permit, at));
        let used = held().fold(0_u64, |sum, permit| sum.saturating_add(permit.used));
        let found = if used > 0 {
            StoredState::Present
        } else if permits.iter().any(|permit| self.is_from_future(permit, at)) {
            StoredState::Discarded
        } else {
            StoredState::Missing
        };
        let leaving = held().map(|permit| (permit.used, permit.expires_at));
        let admission = admission_after_expiry(self.quota, used, cost.needed(), leaving);
        Reading {
            admission,
            fits_again: admission,
            used: used.min(MAX_EXACT),
            full_reset_at: held().next_back().map_or(asked_at, |permit| permit.expires_at),
            position: ChargePosition::default(),
            refunded: 0,
            added: 0,
            reserved: 0,
            found,
        }
    }

    /// Adds a permit with `id`. Adds none if a permit with this id exists, because the charge is
    /// then a repetition of the charge that granted the permit.
    fn charge(&self, state: Option<State>, cost: Cost, id: ChargeId, at: StepTime) -> State {
        let mut state = state.unwrap_or_default();
        let at = self.moment(&state.permits, at);
        self.prune(&mut state, at);
        if cost != Cost::PEEK {
            state.permits.retain(|permit| permit.id != id);
            let expires_at = at.now.after(self.permit_ttl);
            self.insert(&mut state, Permit { id, used: cost.get(), expires_at });
        }
        state
    }

    fn refund(
        &self,
        state: &mut State,
        _cost: Cost,
        _mark: ChargePosition,
        id: ChargeId,
        at: StepTime,
    ) -> u64 {
        let at = self.moment(&state.permits, at);
        let Some(index) = self.index_of(state, id, at) else { return 0 };
        let refunded = state.permits.remove(index).used;
        self.prune(state, at);
        refunded
    }

    /// Merges two states: keeps every permit that is in at least one of them. A permit that is in
    /// both expires at the later of its two expiry times.
    fn join(&self, mut one: State, other: State) -> State {
        for permit in other.permits {
            let known = one.permits.iter().position(|known| known.id == permit.id);
            let known = known.map_or(permit, |index| one.permits.remove(index));
            let expires_at = permit.expires_at.max(known.expires_at);
            self.insert(
                &mut one,
                Permit { used: permit.used.max(known.used), expires_at, ..permit },
            );
        }
        keep_last(&mut one.permits, MAX_QUOTA);
        one
    }

    fn expires_at(&self, state: &State) -> Timestamp {
        state.permits.last().map_or(Timestamp::EPOCH, |permit| permit.expires_at)
    }

    /// Returns the Unix epoch. This means that a store need not remember which charges of a
    /// concurrency limit were refunded: a refund removes the permit by its id, so a repeated refund
    /// finds no permit.
    fn refundable_until(&self, _mark: ChargePosition) -> Timestamp {
        Timestamp::EPOCH
    }
}
