//! The windows of a fixed window's account.

use std::collections::BTreeMap;

use tollgate_core::algo::FixedWindow;
use tollgate_core::{MAX_EXACT, Timestamp};

use super::account::Account;
use super::call::Moment;
use super::clocks::Clocks;
use super::event::{Event, Units};
use super::holds::Held;

/// All that the store told of one window, known by its reset.
#[derive(Debug, Default)]
pub(super) struct Window<'h> {
    pub(super) resets_at: Timestamp,
    /// What counted, and when it was told the window certainly stood.
    pub(super) charges: Vec<Event<'h>>,
    /// What gave units back.
    pub(super) refunds: Vec<Event<'h>>,
    /// What changed nothing and told what is used.
    pub(super) sights: Vec<Event<'h>>,
    /// What may have counted here, or given back: its outcome is unknown, or the window may have
    /// been forgotten by then because some caller's clock had passed its end.
    pub(super) uncertain: Vec<Event<'h>>,
    /// What is given back into it when it runs out, and may have been.
    pub(super) holds: Vec<Held<'h>>,
    /// Charges that were told after the window may have been forgotten.
    pub(super) late: Units,
}

impl<'h> Window<'h> {
    /// The windows of one epoch of `account`, whose limit is `limit`, in the order of their resets.
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
            let runs_out_here = |held: &&Held<'h>| held.is_released_into(resets_at);
            window.holds.extend(account.holds.values().filter(runs_out_here).cloned());
        }
        windows.into_values().collect()
    }

    /// Has what windows count that opened anew in a cut be a part of those, perhaps, that opened
    /// before them: a store that is told of a window that it lost joins the two. The one that opened
    /// first stands then, with as much used as either had. `is_cut` tells whether a window may be
    /// gone by what told of it first; `windows` are in the order of their resets.
    pub(super) fn join_cut(
        windows: &mut [Self],
        limit: &FixedWindow,
        is_cut: impl Fn(&Event<'h>) -> bool,
    ) {
        for place in 1..windows.len() {
            let (before, after) = windows.split_at_mut(place);
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

    /// When the first answer told of the window.
    pub(super) fn first_reported(&self) -> Option<&Event<'h>> {
        self.certain_events().min_by_key(|event| event.answered)
    }

    /// Everything that was told of it with certainty.
    pub(super) fn certain_events(&self) -> impl Iterator<Item = &Event<'h>> {
        self.charges.iter().chain(&self.refunds).chain(&self.sights)
    }

    /// Whether units were or may have been given back in it.
    pub(super) fn has_refunds(&self) -> bool {
        !self.refunds.is_empty()
            || !self.holds.is_empty()
            || self.uncertain.iter().any(|event| event.refunded() > 0)
    }

    /// Whether it counts more than a store can count: then the numbers say nothing.
    pub(super) fn is_saturated(&self) -> bool {
        self.certain_events().any(|event| event.used() >= Units::from(MAX_EXACT))
    }
}

/// Whether a charge whose outcome or epoch nobody knows may have been put into the window that
/// ends at `resets_at`.
fn may_hold(resets_at: Timestamp, event: &Event<'_>, limit: &FixedWindow) -> bool {
    if let Some(reading) = event.reading() {
        return reading.full_reset_at == resets_at;
    }
    let opened_at = resets_at.as_millis().saturating_sub(limit.window().get());
    let ahead = event.now.after(event.limit.skew_max());
    event.now < resets_at && ahead >= Timestamp::from_millis(opened_at)
}

/// Sums of units by real time.
#[derive(Debug)]
pub(super) struct Sums(Vec<(Moment, Units)>);

impl Sums {
    /// Of units that happened, or may have, from these moments on.
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

    /// The units before `moment`.
    pub(super) fn before(&self, moment: Moment) -> Units {
        let count = self.0.partition_point(|(at, _)| *at < moment);
        count.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}
