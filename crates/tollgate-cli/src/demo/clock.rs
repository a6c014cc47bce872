//! The clock of the demo. During the replay, the clock shows the log's time. After the replay, it
//! shows the current time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::model::{Millis, Timestamp};
use tollgate::{Clock, SystemClock};

/// A clock for the replay of a log, as if the log ended at the current time. The time of the clock,
/// and with it the windows of limits, advances as fast as requests are sent.
#[derive(Clone, Debug)]
pub(crate) struct DemoClock {
    /// The time of the request that was replayed last; 0 after the replay.
    replayed: Arc<AtomicU64>,
    /// The difference between the log's time and the current time.
    shift: Millis,
}

impl DemoClock {
    /// Creates a clock that starts at the log's time `first`, and that shows the current time when
    /// the log has reached `last`.
    pub(crate) fn new(first: Timestamp, last: Timestamp) -> Self {
        let shift = SystemClock.now().since(last);
        Self { replayed: Arc::new(AtomicU64::new(first.after(shift).as_millis())), shift }
    }

    /// Sets the time that the log has reached.
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
