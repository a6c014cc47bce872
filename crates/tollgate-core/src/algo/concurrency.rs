//! Concurrency: at most so many units in flight.
//!
//! Source: semaphores with leases; the set of request ids, each with an end of its own, is what
//! Stripe ("Scaling your API with rate limiters", 2017) and later Apache APISIX came to, after
//! plain counters had leaked with every node that died.

use alloc::vec::Vec;

use super::{At, Step, fits_when_left, keep_last};
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::limit_error::{LimitError, check_range, check_span};
use crate::mark::Mark;
use crate::reading::{Found, Reading};
use crate::time::{MAX_EXACT, Millis, Timestamp};

/// The largest quota: what one subject's state can grow to.
pub const MAX_QUOTA: u64 = 10_000;

/// At most `quota` units in flight, each for at most `lease` unless renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    quota: u64,
    lease: Millis,
}

/// One request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The charge that holds it.
    pub id: ChargeId,
    /// Units, never zero.
    pub used: u64,
    /// When it ends if it is neither renewed nor given back.
    pub expires_at: Timestamp,
}

/// What is in flight, the lease that ends first at the front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// In rising order of their ends.
    pub leases: Vec<Lease>,
}

impl Concurrency {
    /// `quota` units in flight; a lease ends by itself after `lease`.
    ///
    /// # Errors
    /// [`LimitError`] for a zero or a quota above [`MAX_QUOTA`].
    pub fn new(quota: u64, lease: Millis) -> Result<Self, LimitError> {
        check_range("quota", quota, MAX_QUOTA, "because every request in flight is kept")?;
        check_span("lease", lease)?;
        Ok(Self { quota, lease })
    }

    /// Units in flight.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// How long a request may run without renewing.
    #[must_use]
    pub const fn lease(&self) -> Millis {
        self.lease
    }

    /// Puts the lease of `id` off to one lease from now; answers whether there was one.
    pub(crate) fn renew(&self, state: &mut State, id: ChargeId, at: At) -> Option<u64> {
        let at = self.moment(&state.leases, at);
        self.index_of(state, id, at)?;
        self.prune(state, at);
        let index = state.leases.iter().position(|lease| lease.id == id)?;
        let lease = state.leases.remove(index);
        self.insert(state, Lease { expires_at: at.now.after(self.lease), ..lease });
        Some(lease.used)
    }

    /// The moment of the decision: never before a lease was granted or renewed.
    ///
    /// By a clock that lags a lease would end early, and be cut short by its own renewal.
    fn moment(&self, leases: &[Lease], at: At) -> At {
        let newest = leases.iter().rfind(|lease| !self.is_impossible(lease, at));
        let granted_at = newest.map_or(Timestamp::EPOCH, |newest| {
            Timestamp::EPOCH.after(newest.expires_at.since(Timestamp::EPOCH.after(self.lease)))
        });
        At { now: at.now.max(granted_at), ..at }
    }

    /// Where the lease of `id` is, if it is still held.
    fn index_of(&self, state: &State, id: ChargeId, at: At) -> Option<usize> {
        state.leases.iter().position(|lease| lease.id == id && self.is_held(lease, at))
    }

    /// Whether a lease is still held.
    fn is_held(&self, lease: &Lease, at: At) -> bool {
        at.now < lease.expires_at && !self.is_impossible(lease, at)
    }

    /// Whether a lease cannot have been granted by anyone with a right clock.
    fn is_impossible(&self, lease: &Lease, at: At) -> bool {
        lease.expires_at > at.now.after(self.lease).after(at.skew_max)
    }

    /// Drops what nobody holds.
    fn prune(&self, state: &mut State, at: At) {
        state.leases.retain(|lease| self.is_held(lease, at));
    }

    /// Puts a lease where its end belongs: at the back, unless the limit's lease was shortened.
    fn insert(&self, state: &mut State, lease: Lease) {
        let index = state.leases.partition_point(|other| other.expires_at <= lease.expires_at);
        state.leases.insert(index, lease);
    }
}

impl Step for Concurrency {
    type State = State;

    fn read(&self, state: Option<&State>, cost: Cost, at: At) -> Reading {
        let leases = state.map_or(&[][..], |state| &state.leases);
        let asked_at = at.now;
        let at = self.moment(leases, at);
        let held = || leases.iter().filter(|lease| self.is_held(lease, at));
        let used = held().fold(0_u64, |sum, lease| sum.saturating_add(lease.used));
        let found = if used > 0 {
            Found::State
        } else if leases.iter().any(|lease| self.is_impossible(lease, at)) {
            Found::Discarded
        } else {
            Found::Nothing
        };
        let leaving = held().map(|lease| (lease.used, lease.expires_at));
        let fit = fits_when_left(self.quota, used, cost.needed(), leaving);
        Reading {
            fit,
            again: fit,
            used: used.min(MAX_EXACT),
            whole_at: held().next_back().map_or(asked_at, |lease| lease.expires_at),
            mark: Mark::default(),
            given_back: 0,
            added: 0,
            held: 0,
            found,
        }
    }

    /// A charge that holds a lease already holds that one: a repeated take is one request.
    fn take(&self, state: Option<State>, cost: Cost, id: ChargeId, at: At) -> State {
        let mut state = state.unwrap_or_default();
        let at = self.moment(&state.leases, at);
        self.prune(&mut state, at);
        if cost != Cost::PEEK {
            state.leases.retain(|lease| lease.id != id);
            let expires_at = at.now.after(self.lease);
            self.insert(&mut state, Lease { id, used: cost.get(), expires_at });
        }
        state
    }

    fn refund(&self, state: &mut State, _cost: Cost, _mark: Mark, id: ChargeId, at: At) -> u64 {
        let at = self.moment(&state.leases, at);
        let Some(index) = self.index_of(state, id, at) else { return 0 };
        let given_back = state.leases.remove(index).used;
        self.prune(state, at);
        given_back
    }

    /// Every lease of either, until the later of its ends.
    fn join(&self, mut one: State, other: State) -> State {
        for lease in other.leases {
            let known = one.leases.iter().position(|known| known.id == lease.id);
            let known = known.map_or(lease, |index| one.leases.remove(index));
            let expires_at = lease.expires_at.max(known.expires_at);
            self.insert(&mut one, Lease { used: lease.used.max(known.used), expires_at, ..lease });
        }
        keep_last(&mut one.leases, MAX_QUOTA);
        one
    }

    fn over_at(&self, state: &State) -> Timestamp {
        state.leases.last().map_or(Timestamp::EPOCH, |lease| lease.expires_at)
    }

    /// A lease is given back by its id, which is gone with it: nothing needs to be remembered.
    fn refundable_until(&self, _mark: Mark) -> Timestamp {
        Timestamp::EPOCH
    }
}
