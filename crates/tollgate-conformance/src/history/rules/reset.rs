//! Checks that a window has one reset, and ends neither early nor late.

use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{MAX_EXACT, StoredState, Timestamp};

use super::super::window::Window;
use super::*;

pub(super) fn check(
    case: &mut Case<'_, '_>,
    limit: &FixedWindow,
    epoch: &[Event<'_>],
    windows: &[Window<'_>],
) {
    for event in epoch {
        if let Some(what) = misplaced(event, limit) {
            case.violates(Rule::Reset, what, &[event]);
        }
    }
    check_separation(case, limit, windows);
    if !windows.iter().any(Window::has_refunds) {
        check_remembered(case, epoch, windows);
    }
}

/// Returns a description of the error if the reset in the answer to `event` is wrong by itself,
/// without comparison with other answers.
fn misplaced(event: &Event<'_>, limit: &FixedWindow) -> Option<String> {
    let resets_at = event.reading()?.full_reset_at;
    let (reset, window) = (resets_at.as_millis(), limit.window());
    if reset == MAX_EXACT {
        return None;
    }
    let latest = event.now.after(window).after(event.limit.skew_max());
    if resets_at <= event.now {
        Some(format!("a window that ended at {reset} is reported after its end"))
    } else if resets_at > latest {
        Some(format!("a window of {window} that ends at {reset} cannot be open yet"))
    } else if limit.anchor() == Anchor::Calendar && !reset.is_multiple_of(window.get()) {
        Some(format!("{reset} is not a multiple of {window}"))
    } else if !is_scheduled_end(limit, resets_at) {
        Some(format!("no window of the schedule ends at {reset}"))
    } else {
        None
    }
}

/// Returns whether a window of the limit's schedule ends at `time`. Returns true if the limit has
/// no schedule.
fn is_scheduled_end(limit: &FixedWindow, time: Timestamp) -> bool {
    let Anchor::Scheduled(schedule) = limit.anchor() else { return true };
    schedule.window_at(time).start == time
}

/// Checks that no window opens before the previous window has ended.
fn check_separation(case: &mut Case<'_, '_>, limit: &FixedWindow, windows: &[Window<'_>]) {
    let resets =
        windows.iter().filter_map(|window| Some((window.resets_at, window.first_reported()?)));
    let resets: Vec<_> = resets.collect();
    for pair in resets.windows(2) {
        let ((earlier, one), (later, other)) = (pair[0], pair[1]);
        let both_answered = one.answered.max(other.answered);
        let forgotten = case.clocks.latest_before(both_answered) >= earlier || case.is_cut(one);
        if later < earlier.after(limit.shortest_window()) && !forgotten {
            let (earlier, later) = (earlier.as_millis(), later.as_millis());
            let what =
                format!("windows of {} that end at {earlier} and {later} overlap", limit.window());
            case.violates(Rule::Reset, what, &[one, other]);
        }
    }
}

/// Checks that no answer reports an empty state while a window is open.
fn check_remembered(case: &mut Case<'_, '_>, epoch: &[Event<'_>], windows: &[Window<'_>]) {
    let may_be_gone =
        |window: &&Window<'_>| window.first_reported().is_some_and(|opened| case.is_cut(opened));
    let kept = windows.iter().filter(|window| !may_be_gone(window));
    let charges = kept.flat_map(|window| &window.charges);
    let mut charges: Vec<_> = charges.map(|charge| (charge.answered, charge)).collect();
    charges.sort_by_key(|(answered, _)| *answered);
    let mut seen = charges.into_iter().peekable();
    let mut open: Option<(Timestamp, &Event<'_>)> = None;
    for event in epoch {
        while let Some((_, charge)) = seen.next_if(|(answered, _)| *answered < event.issued) {
            let resets_at =
                charge.reading().map_or(Timestamp::EPOCH, |reading| reading.full_reset_at);
            if open.is_none_or(|(latest, _)| latest < resets_at) {
                open = Some((resets_at, charge));
            }
        }
        let nothing = event.reading().is_some_and(|reading| reading.found == StoredState::Missing);
        let Some((resets_at, charge)) = open.filter(|(resets_at, _)| event.now < *resets_at) else {
            continue;
        };
        let forgotten = case.clocks.latest_before(event.answered) >= resets_at;
        if nothing && !forgotten {
            let what = format!("no state is found of the window until {}", resets_at.as_millis());
            case.violates(Rule::Reset, what, &[charge, event]);
            return;
        }
    }
}
