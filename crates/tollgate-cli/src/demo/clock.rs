//! The clock of the demo. During the replay, the clock shows the times of the log, moved forward to
//! end at the current time. After the replay, it shows the current time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::model::{Millis, Timestamp};
use tollgate::{Clock, SystemClock};

/// A clock for the replay of a log, as if the log ended at the current time. The time of the clock,
/// and with it the windows of limits, advances as fast as requests are sent.
#[derive(Clone, Debug)]
pub(crate) struct DemoClock {
    /// The time that the clock shows during the replay: the shifted time of the request that was
    /// replayed last. 0 after the replay.
    replayed: Arc<AtomicU64>,
    /// The difference between the current time and the end of the log, which is added to every time
    /// of the log.
    shift: Millis,
}

impl DemoClock {
    /// Creates a clock for a log with the times from `first` to `last`. The clock starts at
    /// `first`, plus the time that has passed since `last`.
    pub(crate) fn new(first: Timestamp, last: Timestamp) -> Self {
        let shift = SystemClock.now().since(last);
        Self { replayed: Arc::new(AtomicU64::new(first.after(shift).as_millis())), shift }
    }

    /// Sets the clock to `log_time`, the time that the replay has reached in the log.
    pub(crate) fn show(&self, log_time: Timestamp) {
        self.replayed.store(log_time.after(self.shift).as_millis(), Ordering::Relaxed);
    }

    /// Switches to the current time.
    pub(crate) fn end_replay(&self) {
        self.replayed.store(0, Ordering::Relaxed);
    }
}

impl Clock for DemoClock {
    fn now(&self) -> Timestamp {
        match self.replayed.load(Ordering::Relaxed) {
            0 => SystemClock.now(),
            replayed => Timestamp::from_millis(replayed),
        }
    }
}
