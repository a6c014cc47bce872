//! Schedules for tests. The windows alternate between three lengths, like days of 23, 24 and 25
//! hours when clocks change.

use tollgate_core::algo::{Schedule, ScheduledWindow, WindowSchedule};
use tollgate_core::{Millis, Timestamp};

/// A schedule with windows of 23, 24 and 25 units of time, which repeat in this order.
#[derive(Debug)]
struct Uneven {
    name: &'static str,
    /// The length of a unit of time in milliseconds.
    unit: u64,
    /// The number of milliseconds by which the first window begins before the Unix epoch.
    earlier: u64,
}

static MILLIS: Uneven = Uneven { name: "uneven milliseconds", unit: 1, earlier: 0 };
static SECONDS: Uneven = Uneven { name: "uneven seconds", unit: 1_000, earlier: 0 };
static EARLIER_SECONDS: Uneven =
    Uneven { name: "earlier uneven seconds", unit: 1_000, earlier: 11_000 };

/// Windows of 23, 24 and 25 ms.
pub const UNEVEN_MILLIS: Schedule = Schedule::new(&MILLIS);
/// Windows of 23, 24 and 25 s.
pub const UNEVEN_SECONDS: Schedule = Schedule::new(&SECONDS);
/// The windows of [`UNEVEN_SECONDS`], 11 s earlier, as in another time zone.
pub const EARLIER_UNEVEN_SECONDS: Schedule = Schedule::new(&EARLIER_SECONDS);

/// The ends of the three windows, in units of time since the start of the first window.
const ENDS: [u64; 3] = [23, 47, 72];

impl WindowSchedule for Uneven {
    fn window_at(&self, now: Timestamp) -> ScheduledWindow {
        let turn = ENDS[2] * self.unit;
        let at = now.as_millis() + self.earlier;
        let (begin, rest) = (at - at % turn, at % turn);
        let time = |units: u64| {
            Timestamp::from_millis((begin + units * self.unit).saturating_sub(self.earlier))
        };
        let index = ENDS.partition_point(|end| end * self.unit <= rest);
        let start = index.checked_sub(1).map_or(0, |before| ENDS[before]);
        ScheduledWindow { start: time(start), end: time(ENDS[index]) }
    }

    fn longest(&self) -> Millis {
        Millis::new(25 * self.unit)
    }

    fn nominal(&self) -> Millis {
        Millis::new(24 * self.unit)
    }

    fn name(&self) -> &str {
        self.name
    }
}
