//! The clocks of nodes and servers. A clock shows the virtual time of the world plus an offset.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::time::Instant;
use tollgate::Clock;
use tollgate_core::Timestamp;

/// The time that a clock without an offset shows when a world starts, in ms since the Unix epoch.
/// It is far from the time of the machine's clock.
const START: u64 = 1_600_000_000_000;

/// Returns the time that a clock shows at `now`, if the clock is `offset` ms ahead of the world's
/// time. The world began at `start`.
pub(crate) fn shown(start: Instant, now: Instant, offset: i64) -> Timestamp {
    let passed = u64::try_from(now.saturating_duration_since(start).as_millis()).unwrap_or(0);
    Timestamp::from_millis((START + passed).saturating_add_signed(offset))
}

/// The wall clock of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeClock {
    start: Instant,
    offset: Arc<AtomicI64>,
}

impl NodeClock {
    pub(crate) fn new(start: Instant, offset: i64) -> Self {
        Self { start, offset: Arc::new(AtomicI64::new(offset)) }
    }

    /// Sets the clock ahead by `millis`, or back if `millis` is negative.
    pub(crate) fn step(&self, millis: i64) {
        self.offset.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        shown(self.start, Instant::now(), self.offset.load(Ordering::Relaxed))
    }
}
