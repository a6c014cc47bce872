//! The clocks of the callers, as the times in the calls show them.

use tollgate_core::Timestamp;

use super::call::{History, Moment, NEVER};

/// The latest time of all callers' clocks, for each moment of the history.
#[derive(Debug)]
pub(super) struct Clocks {
    /// The times that were later than all times sent before. Each entry has the moment at which a
    /// caller first sent the time. Moments and times are in rising order.
    reached: Vec<(Moment, Timestamp)>,
}

impl Clocks {
    pub(super) fn of(history: &History) -> Self {
        let mut reached: Vec<_> =
            history.calls.iter().map(|call| (call.issued, call.now)).collect();
        reached.sort_unstable();
        let mut latest = None;
        reached.retain(|(_, now)| {
            let is_later = latest.is_none_or(|latest| latest < *now);
            latest = latest.max(Some(*now));
            is_later
        });
        Self { reached }
    }

    /// Returns the latest time that any caller had sent to the store before `moment`. The store may
    /// have deleted state that ended by this time. In this case, a caller with a slower clock does
    /// not find the state.
    pub(super) fn latest_before(&self, moment: Moment) -> Timestamp {
        let count = self.reached.partition_point(|(issued, _)| *issued < moment);
        count.checked_sub(1).map_or(Timestamp::EPOCH, |last| self.reached[last].1)
    }

    /// Returns the moment at which a caller first sent `time` or a later time to the store.
    pub(super) fn reaching(&self, time: Timestamp) -> Moment {
        let index = self.reached.partition_point(|(_, now)| *now < time);
        self.reached.get(index).map_or(NEVER, |(issued, _)| *issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Call, Outcome};

    #[test]
    fn clocks_never_run_back() {
        let call = |issued, now| Call {
            issued,
            answered: NEVER,
            now: Timestamp::from_millis(now),
            charges: Vec::new(),
            outcome: Outcome::Unknown,
        };
        let calls = vec![call(5, 30), call(1, 10), call(3, 20), call(4, 5), call(9, 25)];
        let clocks = Clocks::of(&History { calls, ..History::default() });
        let seen = [0, 1, 2, 4, 5, 6, 10].map(|at| clocks.latest_before(at).as_millis());
        assert_eq!(seen, [0, 0, 10, 20, 20, 30, 30]);
    }
}
