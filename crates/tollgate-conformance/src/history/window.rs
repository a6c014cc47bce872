//! The windows of an account with a fixed window.

use std::collections::BTreeMap;

use tollgate_core::algo::FixedWindow;
use tollgate_core::{MAX_EXACT, Timestamp};

use super::account::Account;
use super::call::Moment;
use super::clocks::Clocks;
use super::event::{Event, Units};
use super::holds::Reservation;

/// All answers of the store about one window. The reset time identifies the window.
#[derive(Debug, Default)]
pub(super) struct Window<'h> {
    pub(super) resets_at: Timestamp,
    /// The events that counted units while the window certainly existed.
    pub(super) charges: Vec<Event<'h>>,
    /// The events that returned units.
    pub(super) refunds: Vec<Event<'h>>,
    /// The events that changed no units. Their answers report the used units of the window.
    pub(super) sights: Vec<Event<'h>>,
    /// The events that may have counted or refunded units in this window. Either the outcome of
    /// such an event is unknown, or the window may already have been deleted because a caller's
    /// clock had passed its end.
    pub(super) uncertain: Vec<Event<'h>>,
    /// The reservations that return their units to this window when they expire, and that may have
    /// expired.
    pub(super) holds: Vec<Reservation<'h>>,
    /// The units of the window's charges that were answered when the window may already have been
    /// deleted.
    pub(super) late: Units,
}

impl<'h> Window<'h> {
    /// Returns the windows of one epoch of `account`, in the order of their resets. `limit` is the
    /// limit of the account.
    pub(super) fn all(
        account: &Account<'h>,
        epoch: &[Event<'h>],
        limit: &FixedWindow,
        clocks: &Clocks,
    ) -> Vec<Self> {
        let mut windows = BTreeMap::<Timestamp, Self>::new();
        for event in epoch.iter().filter(|event| event.is_of_state()) {
            let Some(reading) = event.reading() else { continue };
            let window = windows.entry(reading.full_reset_at).or_default();
            window.resets_at = reading.full_reset_at;
            if clocks.latest_before(event.answered) >= reading.full_reset_at {
                window.late += event.admitted();
                window.uncertain.push(*event);
            } else if event.counted() > 0 {
                window.charges.push(*event);
            } else if event.refunded() > 0 {
                window.refunds.push(*event);
            } else {
                window.sights.push(*event);
            }
        }
        for window in windows.values_mut() {
            let resets_at = window.resets_at;
            let may_be_here = |event: &&Event<'h>| may_hold(resets_at, event, limit);
            window.uncertain.extend(account.uncertain.iter().filter(may_be_here));
            let runs_out_here = |held: &&Reservation<'h>| held.is_released_into(resets_at);
            window.holds.extend(account.holds.values().filter(runs_out_here).cloned());
        }
        windows.into_values().collect()
    }

    /// Adds the charges of windows that were opened after a cut to the window that was lost in the
    /// cut, as uncertain charges. A store that receives a lost window again merges this window with
    /// the window that was opened after the cut. The merged window has the reset of the window that
    /// was opened first, and the larger used units of both. `is_cut` receives the first answer
    /// about a window and returns whether the window may be lost. `windows` are in the order of
    /// their resets.
    pub(super) fn join_cut(
        windows: &mut [Self],
        limit: &FixedWindow,
        is_cut: impl Fn(&Event<'h>) -> bool,
    ) {
        for index in 1..windows.len() {
            let (before, after) = windows.split_at_mut(index);
            let Some(first) = before.last_mut() else { continue };
            if !first.first_reported().is_some_and(&is_cut) {
                continue;
            }
            let expires_at = first.resets_at.after(limit.window());
            for anew in after.iter().take_while(|window| window.resets_at < expires_at) {
                first.uncertain.extend_from_slice(&anew.charges);
            }
        }
    }

    /// Returns the first answer about the window.
    pub(super) fn first_reported(&self) -> Option<&Event<'h>> {
        self.certain_events().min_by_key(|event| event.answered)
    }

    /// Returns all events that certainly belong to the window.
    pub(super) fn certain_events(&self) -> impl Iterator<Item = &Event<'h>> {
        self.charges.iter().chain(&self.refunds).chain(&self.sights)
    }

    /// Returns whether units of the window were or may have been refunded.
    pub(super) fn has_refunds(&self) -> bool {
        !self.refunds.is_empty()
            || !self.holds.is_empty()
            || self.uncertain.iter().any(|event| event.refunded() > 0)
    }

    /// Returns whether the used units reached the largest number that a store can count. In such a
    /// window, the numbers in the answers are meaningless.
    pub(super) fn is_saturated(&self) -> bool {
        self.certain_events().any(|event| event.used() >= Units::from(MAX_EXACT))
    }
}

/// Returns whether a charge with an unknown outcome or epoch may belong to the window that ends at
/// `resets_at`.
fn may_hold(resets_at: Timestamp, event: &Event<'_>, limit: &FixedWindow) -> bool {
    if let Some(reading) = event.reading() {
        return reading.full_reset_at == resets_at;
    }
    let opened_at = resets_at.as_millis().saturating_sub(limit.window().get());
    let ahead = event.may_count_until.after(event.limit.skew_max());
    event.now < resets_at && ahead >= Timestamp::from_millis(opened_at)
}

/// The running sum of units over real time.
#[derive(Debug)]
pub(super) struct Sums(Vec<(Moment, Units)>);

impl Sums {
    /// Creates the running sum from units with the moments at which they are added.
    pub(super) fn new(units: impl IntoIterator<Item = (Moment, Units)>) -> Self {
        let mut sums: Vec<_> = units.into_iter().filter(|(_, units)| *units != 0).collect();
        sums.sort_unstable();
        let mut sum = 0;
        for (_, units) in &mut sums {
            sum += *units;
            *units = sum;
        }
        Self(sums)
    }

    /// Returns the sum of all units that were added before `moment`.
    pub(super) fn before(&self, moment: Moment) -> Units {
        let count = self.0.partition_point(|(at, _)| *at < moment);
        count.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}
