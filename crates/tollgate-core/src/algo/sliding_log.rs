//! Sliding log: the exact time and cost of every charge in the last window.
//!
//! Source: the log of time stamps in a sorted set, as Figma ("An alternative approach to rate
//! limiting", 2017) and ClassDojo described it. This implementation stores only admitted charges
//! (and refused ones if the limit counts refusals). All charges of one millisecond share an entry.
//! Use it for small quotas such as sign-in attempts.

use alloc::vec::Vec;

use super::{CellStep, StepTime, admission_after_expiry, keep_last, merge_series};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit_error::{LimitError, check_range, check_span};
use crate::reading::{Reading, StoredState};
use crate::time::{MAX_EXACT, Millis, Timestamp};

/// The largest quota of a sliding log. It bounds the size of one subject's state, which has an
/// entry for each charge.
pub const MAX_QUOTA: u64 = 10_000;

/// A limit of at most `quota` units in any interval of length `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    quota: u64,
    window: Millis,
}

/// The charges of one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time at which the charges were made.
    pub at: Timestamp,
    /// The units of the charges. Only the newest entry can have zero units. An empty newest entry
    /// is kept, because later decisions must not use a time before its time.
    pub used: u64,
}

/// The stored state: the charges of the last window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The entries, sorted by time, the oldest first.
    pub entries: Vec<Entry>,
}

impl SlidingLog {
    /// Creates a limit of `quota` units in any interval of length `window`.
    ///
    /// # Errors
    /// [`LimitError`] if `quota` or `window` is zero, if `quota` is above [`MAX_QUOTA`], or if
    /// `window` is above [`MAX_WINDOW`](crate::time::MAX_WINDOW).
    pub fn new(quota: u64, window: Millis) -> Result<Self, LimitError> {
        let because =
            "because the store records every charge; a sliding_window supports larger quotas";
        check_range("quota", quota, MAX_QUOTA, because)?;
        check_span("window", window)?;
        Ok(Self { quota, window })
    }

    /// Returns the units per window.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// Returns the length of the window.
    #[must_use]
    pub const fn window(&self) -> Millis {
        self.window
    }

    /// Returns the entries that have not expired, the time of the decision, and whether the state
    /// was missing, present or discarded. The time of the decision is that of `at`, but never
    /// before the newest entry.
    fn current<'a>(
        &self,
        state: Option<&'a State>,
        at: StepTime,
    ) -> (&'a [Entry], Timestamp, StoredState) {
        let Some(newest) = state.and_then(|state| state.entries.last()) else {
            return (&[], at.now, StoredState::Missing);
        };
        if at.is_from_future(newest.at) {
            return (&[], at.now, StoredState::Discarded);
        }
        let now = at.now.max(newest.at);
        let entries = state.map_or(&[][..], |state| &state.entries);
        let left = entries.partition_point(|entry| entry.at.after(self.window) <= now);
        let found = if left < entries.len() { StoredState::Present } else { StoredState::Missing };
        (&entries[left..], now, found)
    }

    /// Returns the same entries and the same time as [`current`](Self::current). The entries use the
    /// memory of `state`.
    fn unexpired(&self, state: Option<State>, at: StepTime) -> (Vec<Entry>, Timestamp) {
        let (entries, now, _) = self.current(state.as_ref(), at);
        let counted = entries.len();
        let mut entries = state.map(|state| state.entries).unwrap_or_default();
        entries.drain(..entries.len() - counted);
        (entries, now)
    }
}

/// Adds a charge of `cost` at `now`, which is not before the newest entry.
///
/// If the log then has more than [`MAX_QUOTA`] entries, the two oldest become one entry, at the
/// later of their times. This bounds the state of a limit with a large overdraft. The newer entries
/// alone fill every quota, so no unit expires too early. After a refund of newer units, a charge may
/// fit later than without the merge.
fn add(entries: &mut Vec<Entry>, now: Timestamp, cost: Cost) {
    match entries.last_mut() {
        Some(entry) if entry.at == now => {
            entry.used = entry.used.saturating_add(cost.get()).min(MAX_EXACT);
        }
        _ if cost != Cost::PEEK => {
            entries.pop_if(|entry| entry.used == 0);
            entries.push(Entry { at: now, used: cost.get() });
        }
        _ => {}
    }
    if entries.len() as u64 > MAX_QUOTA {
        let oldest = entries.remove(0);
        entries[0].used = entries[0].used.saturating_add(oldest.used).min(MAX_EXACT);
    }
}

/// Removes up to `units` units, newer ones first, but none of the newest `kept` units.
fn remove_units(entries: &mut Vec<Entry>, mut kept: u64, mut units: u64) {
    let mut emptied = 0..0;
    for (index, entry) in entries.iter_mut().enumerate().rev() {
        let removed = entry.used.saturating_sub(kept).min(units);
        kept = kept.saturating_sub(entry.used);
        units -= removed;
        entry.used -= removed;
        if removed > 0 && entry.used == 0 {
            emptied = index..emptied.end.max(index + 1);
        }
        if units == 0 {
            break;
        }
    }
    // The emptied entries follow each other, and are usually the oldest.
    entries.drain(emptied);
}

impl CellStep for SlidingLog {
    type State = State;

    fn read(&self, state: Option<&State>, cost: Cost, at: StepTime) -> Reading {
        let (entries, now, found) = self.current(state, at);
        let used = entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.used));
        let leaving = entries.iter().map(|entry| (entry.used, entry.at.after(self.window)));
        let admission = admission_after_expiry(self.quota, used, cost.needed(), leaving);
        Reading {
            admission,
            fits_again: admission,
            used: used.min(MAX_EXACT),
            full_reset_at: entries
                .iter()
                .rfind(|entry| entry.used > 0)
                .map_or(at.now, |entry| entry.at.after(self.window)),
            position: ChargePosition(now.as_millis()),
            refunded: 0,
            added: 0,
            reserved: 0,
            found,
        }
    }

    fn charge(&self, state: Option<State>, cost: Cost, _id: ChargeId, at: StepTime) -> State {
        let (mut entries, now) = self.unexpired(state, at);
        add(&mut entries, now, cost);
        State { entries }
    }

    /// Fills the log at most to the quota. Once the quota is full, each further unit replaces the
    /// oldest of the newest units that fill the quota, because no decision by this quota depends on
    /// that unit any more. The log of a client that keeps retrying therefore does not grow.
    ///
    /// A removed unit is older than the unit that replaces it. At any time, the log therefore
    /// contains at least as many units as were admitted and not refunded, whatever their quotas
    /// were.
    fn charge_refused(
        &self,
        state: Option<State>,
        cost: Cost,
        _id: ChargeId,
        at: StepTime,
    ) -> State {
        let (mut entries, now) = self.unexpired(state, at);
        let cost = Cost::up_to(cost.get().min(self.quota));
        remove_units(&mut entries, self.quota - cost.get(), cost.get());
        add(&mut entries, now, cost);
        State { entries }
    }

    fn refund(
        &self,
        state: &mut State,
        cost: Cost,
        position: ChargePosition,
        _id: ChargeId,
        at: StepTime,
    ) -> u64 {
        let (entries, _, _) = self.current(Some(state), at);
        let first = state.entries.len() - entries.len();
        let found = state.entries.iter().position(|entry| entry.at.as_millis() == position.0);
        let Some(index) = found.filter(|index| *index >= first) else { return 0 };
        let entry = &mut state.entries[index];
        let refunded = cost.get().min(entry.used);
        entry.used -= refunded;
        // The newest entry is kept even if it is empty. Without that entry, a decision could use an
        // earlier time, although entries that were valid at that time are already removed.
        if entry.used == 0 && index + 1 < state.entries.len() {
            state.entries.remove(index);
        }
        refunded
    }

    fn join(&self, one: State, other: State) -> State {
        let larger = |a: Entry, b: Entry| Entry { used: a.used.max(b.used), ..a };
        let mut entries = merge_series(&one.entries, &other.entries, |entry| entry.at, larger);
        let newest = entries.last().map(|entry| entry.at);
        entries.retain(|entry| entry.used > 0 || Some(entry.at) == newest);
        keep_last(&mut entries, MAX_QUOTA);
        State { entries }
    }

    fn expires_at(&self, state: &State) -> Timestamp {
        state.entries.last().map_or(Timestamp::EPOCH, |entry| entry.at.after(self.window))
    }

    fn refundable_until(&self, position: ChargePosition) -> Timestamp {
        Timestamp::from_millis(position.0).after(self.window)
    }
}
