//! A limit that a request brings along: so many requests in a unit of time.

use alloc::sync::Arc;

use crate::algo::FixedWindow;
use crate::algo::fixed_window::Anchor;
use crate::limit::{Algorithm, Limit};
use crate::time::Millis;

/// A unit of time, as the protocol has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeUnit {
    /// 1 s.
    Second,
    /// 60 s.
    Minute,
    /// 60 min.
    Hour,
    /// 24 h.
    Day,
    /// 7 days.
    Week,
    /// 30 days, whatever the calendar says: as the reference server counts by default.
    Month,
    /// 365 days.
    Year,
}

/// So many requests in a unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests in each unit. None at all blocks.
    pub requests: u32,
    /// The unit. Windows begin on its multiples since the Unix epoch.
    pub unit: TimeUnit,
}

impl TimeUnit {
    /// How long it is.
    #[must_use]
    pub const fn window(self) -> Millis {
        const SECOND: u64 = 1000;
        const DAY: u64 = 24 * 60 * 60 * SECOND;
        Millis::new(match self {
            Self::Second => SECOND,
            Self::Minute => 60 * SECOND,
            Self::Hour => 60 * 60 * SECOND,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 30 * DAY,
            Self::Year => 365 * DAY,
        })
    }

    /// The unit that is `window` long, if one is.
    #[must_use]
    pub fn of(window: Millis) -> Option<Self> {
        use TimeUnit::{Day, Hour, Minute, Month, Second, Week, Year};
        [Second, Minute, Hour, Day, Week, Month, Year].into_iter().find(|u| u.window() == window)
    }

    /// The name of limits that requests bring along: one a unit, so that whoever labels by the
    /// limit's name has few labels whatever callers send.
    const fn override_name(self) -> &'static str {
        match self {
            Self::Second => "override-per-second",
            Self::Minute => "override-per-minute",
            Self::Hour => "override-per-hour",
            Self::Day => "override-per-day",
            Self::Week => "override-per-week",
            Self::Month => "override-per-month",
            Self::Year => "override-per-year",
        }
    }
}

impl Rate {
    /// The limit of this rate, or `None` where it blocks.
    ///
    /// What was counted does not depend on how many requests are allowed: a caller that raises its
    /// rate goes on counting where it was.
    pub(super) fn limit(self) -> Option<Arc<Limit>> {
        let window =
            FixedWindow::new(self.requests.into(), self.unit.window(), Anchor::Calendar).ok()?;
        let limit = Limit::new(self.unit.override_name(), Algorithm::FixedWindow(window));
        limit.ok().map(Arc::new)
    }
}
