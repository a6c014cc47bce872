//! A limit that a caller sends with a request: a number of requests per unit of time.

use alloc::sync::Arc;

use crate::algo::FixedWindow;
use crate::algo::fixed_window::Anchor;
use crate::limit::{Algorithm, Limit};
use crate::time::Millis;

/// A unit of time in Envoy's rate limit protocol.
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
    /// 30 days, independent of the calendar, as in the reference server by default.
    Month,
    /// 365 days.
    Year,
}

/// A number of requests per unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The requests per unit of time. The number 0 blocks all requests.
    pub requests: u32,
    /// The unit of time. Windows begin at multiples of the unit since the Unix epoch.
    pub unit: TimeUnit,
}

impl TimeUnit {
    /// Returns the length of the unit.
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

    /// Returns the unit of time that is as long as `window`, if there is such a unit.
    #[must_use]
    pub fn of(window: Millis) -> Option<Self> {
        use TimeUnit::{Day, Hour, Minute, Month, Second, Week, Year};
        [Second, Minute, Hour, Day, Week, Month, Year].into_iter().find(|u| u.window() == window)
    }

    /// Returns the name of a limit that a caller sends for this unit of time. Metrics have the name
    /// of a limit as a label. With one name for each unit of time, the label has few values,
    /// whatever callers send.
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
    /// Returns the limit of this rate, or `None` if the rate admits no request.
    ///
    /// The counter does not depend on the number of requests in the rate. If a caller raises this
    /// number, the count continues.
    pub(super) fn limit(self) -> Option<Arc<Limit>> {
        let window =
            FixedWindow::new(self.requests.into(), self.unit.window(), Anchor::Calendar).ok()?;
        let limit = Limit::new(self.unit.override_name(), Algorithm::FixedWindow(window));
        limit.ok().map(Arc::new)
    }
}
