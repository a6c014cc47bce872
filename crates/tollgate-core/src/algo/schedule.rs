//! Windows of different lengths, such as the months of a calendar.

use core::fmt;

use crate::time::{Millis, Timestamp};

/// A sequence of windows that follow each other without a gap, such as the months of a calendar.
///
/// This crate contains no calendar, because it has no dependencies and no data about time zones.
/// Another crate implements this trait for calendars. The windows are a pure function of the time:
/// a decision at `now` uses the window that contains `now`, whichever clock returned `now`.
pub trait WindowSchedule: fmt::Debug + Send + Sync {
    /// Returns the window that contains `now`. The window starts at or before `now` and ends after
    /// `now`. For every time in the window, the method returns the same window.
    fn window_at(&self, now: Timestamp) -> ScheduledWindow;

    /// Returns an upper bound of the windows' lengths. No window is longer than this bound, and
    /// none is shorter than half of this bound.
    fn longest(&self) -> Millis;

    /// Returns the usual length of a window, which clients receive as the window of the quota.
    fn nominal(&self) -> Millis;

    /// Returns a description of the windows, such as `month in Europe/Berlin`. Two schedules with
    /// the same name have the same windows.
    fn name(&self) -> &str;
}

/// A window of a [`Schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledWindow {
    /// The first time in the window.
    pub start: Timestamp,
    /// The end of the window, exclusive.
    pub end: Timestamp,
}

impl ScheduledWindow {
    /// Returns whether `now` is in the window.
    #[must_use]
    pub fn contains(&self, now: Timestamp) -> bool {
        self.start <= now && now < self.end
    }
}

/// The windows of a limit: a reference to a [`WindowSchedule`], or only one window of such a
/// schedule.
///
/// Two references are equal if their schedules have the same name. Two single windows are equal if
/// they have the same end and the same bound of their length.
#[derive(Clone, Copy)]
pub struct Schedule(Windows);

#[derive(Clone, Copy)]
enum Windows {
    All(&'static dyn WindowSchedule),
    One { end: Timestamp, longest: Millis },
}

impl Schedule {
    /// Creates a schedule that refers to `windows`.
    #[must_use]
    pub const fn new(windows: &'static dyn WindowSchedule) -> Self {
        Self(Windows::All(windows))
    }

    /// Creates a schedule that contains only the current window, which ends at `end` and is at most
    /// `longest` long. Such a schedule is for a process that has no calendar and receives the end
    /// of the window with each decision.
    #[must_use]
    pub const fn ending(end: Timestamp, longest: Millis) -> Self {
        Self(Windows::One { end, longest })
    }

    /// Returns the window that contains `now`.
    #[must_use]
    pub fn window_at(self, now: Timestamp) -> ScheduledWindow {
        match self.0 {
            Windows::All(windows) => windows.window_at(now),
            Windows::One { end, longest } => {
                let start = end.as_millis().saturating_sub(longest.get());
                ScheduledWindow { start: Timestamp::from_millis(start), end }
            }
        }
    }

    /// Returns an upper bound of the windows' lengths, like [`WindowSchedule::longest`].
    #[must_use]
    pub fn longest(self) -> Millis {
        match self.0 {
            Windows::All(windows) => windows.longest(),
            Windows::One { longest, .. } => longest,
        }
    }

    /// Returns the usual length of a window, like [`WindowSchedule::nominal`].
    #[must_use]
    pub fn nominal(self) -> Millis {
        match self.0 {
            Windows::All(windows) => windows.nominal(),
            Windows::One { longest, .. } => longest,
        }
    }

    /// Returns a description of the windows, like [`WindowSchedule::name`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Windows::All(windows) => windows.name(),
            Windows::One { .. } => "one window",
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schedule").field(&self.name()).finish()
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Windows::All(one), Windows::All(other)) => one.name() == other.name(),
            (
                Windows::One { end, longest },
                Windows::One { end: other_end, longest: other_longest },
            ) => (end, longest) == (other_end, other_longest),
            _ => false,
        }
    }
}

impl Eq for Schedule {}
