//! The clock of the demonstration: the log's time while it is replayed, then today's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::core::{Millis, Timestamp};
use tollgate::{Clock, SystemClock};

/// Replays the log as if it ended now: its hours pass as fast as it is sent, and windows with them.
#[derive(Clone, Debug)]
pub(crate) struct DemoClock {
    /// The moment of the request that was replayed last; 0 when nothing is replayed any more.
    replayed: Arc<AtomicU64>,
    /// How far the log's time lies behind.
    shift: Millis,
}

impl DemoClock {
    /// A clock that begins with `first` and shows today's time at `last`.
    pub(crate) fn new(first: Timestamp, last: Timestamp) -> Self {
        let shift = SystemClock.now().since(last);
        Self { replayed: Arc::new(AtomicU64::new(first.after(shift).as_millis())), shift }
    }

    /// Shows the time of the log.
    pub(crate) fn show(&self, log_time: Timestamp) {
        self.replayed.store(log_time.after(self.shift).as_millis(), Ordering::Relaxed);
    }

    /// Shows the time of today from now on.
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
