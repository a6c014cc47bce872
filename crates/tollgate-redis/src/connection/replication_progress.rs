//! Checks whether a replica keeps up with its primary.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::replication::Replication;

/// The longest replication delay of a replica that serves reads. The replica has all writes that
/// the primary has reported and that are older than this time.
pub const LAG_MAX: Duration = Duration::from_secs(3);

/// The longest time without data from the primary before a replica no longer serves reads. A
/// primary sends data at least every ten seconds by default.
const MAX_SILENCE: Duration = Duration::from_secs(15);

/// The shortest time between two recorded reports of a primary. This time bounds the number of
/// recorded reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The write progress of a shard's primary: the offsets that it reported in the last [`LAG_MAX`],
/// and the last offset that it reported before that.
///
/// A replica keeps up if it has received everything that the primary had written [`LAG_MAX`] ago.
/// The check compares replication offsets and not the servers' clocks, so the check is valid even
/// if the clocks are wrong.
#[derive(Debug, Default)]
pub(crate) struct ReplicationProgress(Mutex<Reports>);

#[derive(Debug, Default)]
struct Reports {
    id: Box<str>,
    /// The primary's offsets and the times of their reports, oldest first.
    offsets: VecDeque<(Instant, u64)>,
}

impl ReplicationProgress {
    /// Records the replication state that the primary reported at `at`.
    pub(crate) fn observe(&self, replication: &Replication, at: Instant) {
        let mut reports = self.0.lock();
        if reports.id != replication.id {
            *reports = Reports { id: replication.id.clone(), offsets: VecDeque::new() };
        }
        let is_old = |(seen, _): &(Instant, u64)| at.saturating_duration_since(*seen) >= LAG_MAX;
        while reports.offsets.get(1).is_some_and(is_old) {
            reports.offsets.pop_front();
        }
        let newest = reports.offsets.back();
        if newest.is_none_or(|(seen, _)| at.saturating_duration_since(*seen) >= REPORT_EVERY) {
            reports.offsets.push_back((at, replication.offset));
        }
    }

    /// Checks whether a server that reported `replication` at `at` can serve reads.
    ///
    /// # Errors
    /// The reason why the server cannot serve reads.
    pub(crate) fn check(&self, replication: &Replication, at: Instant) -> Result<(), Lag> {
        let reports = self.0.lock();
        let Some((_, oldest)) = reports.offsets.front() else { return Err(Lag::Unknown) };
        if reports.id != replication.id {
            return Err(Lag::OtherEpoch);
        }
        if replication.silence > MAX_SILENCE {
            return Err(Lag::Silence(replication.silence));
        }
        let is_old = |(seen, _): &&(Instant, u64)| at.saturating_duration_since(*seen) >= LAG_MAX;
        let needed = reports.offsets.iter().rev().find(is_old).map_or(*oldest, |(_, had)| *had);
        match needed.checked_sub(replication.offset) {
            None | Some(0) => Ok(()),
            Some(bytes) => Err(Lag::Behind(bytes)),
        }
    }
}

/// The reason why a replica does not serve reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// The primary has not reported its offset yet.
    Unknown,
    /// The server does not report its offset.
    Unreported,
    /// The server follows another primary, or follows no primary. The server's data belongs to
    /// another stream.
    OtherEpoch,
    /// The server has not received data from its primary. The value is the time since it last
    /// received data.
    Silence(Duration),
    /// The server lacks some of the bytes that the primary had written [`LAG_MAX`] ago. The value
    /// is the number of missing bytes.
    Behind(u64),
}

impl std::fmt::Display for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => f.write_str("its primary has not reported its offset yet"),
            Self::Unreported => {
                f.write_str("it does not answer INFO; check that the user may send it")
            }
            Self::OtherEpoch => f.write_str("it is not a replica of this shard's primary"),
            Self::Silence(time) if *time == Duration::MAX => {
                f.write_str("it does not report when it last received data from its primary")
            }
            Self::Silence(time) => {
                write!(f, "it has received nothing from its primary for {} s", time.as_secs())
            }
            Self::Behind(bytes) => {
                let seconds = LAG_MAX.as_secs();
                write!(f, "it lacks {bytes} bytes that its primary had {seconds} s ago")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replication(id: &str, offset: u64) -> Replication {
        Replication::following(id, offset)
    }

    #[test]
    fn a_replica_needs_what_the_primary_had_a_while_ago() {
        let (progress, start) = (ReplicationProgress::default(), Instant::now());
        assert_eq!(progress.check(&replication("a", 9), start), Err(Lag::Unknown));
        for second in 0..=10 {
            progress.observe(&replication("a", 100 * second), start + Duration::from_secs(second));
        }
        let now = start + Duration::from_secs(10);
        assert_eq!(
            progress.check(&replication("a", 700), now),
            Ok(()),
            "what it had three seconds ago"
        );
        assert_eq!(progress.check(&replication("a", 690), now), Err(Lag::Behind(10)));
        assert_eq!(progress.check(&replication("b", 700), now), Err(Lag::OtherEpoch));
        // The primary sends no more reports, so its last report stays valid.
        let later = now + Duration::from_secs(1_000);
        assert_eq!(progress.check(&replication("a", 999), later), Err(Lag::Behind(1)));
        assert_eq!(progress.check(&replication("a", 1_000), later), Ok(()));
        let silence = Duration::from_secs(60);
        let silent = Replication { silence, ..replication("a", 1_000) };
        assert_eq!(progress.check(&silent, later), Err(Lag::Silence(silence)));
    }

    #[test]
    fn another_primary_begins_another_stream() {
        let (progress, start) = (ReplicationProgress::default(), Instant::now());
        progress.observe(&replication("a", 1_000), start);
        progress.observe(&replication("b", 10), start);
        assert_eq!(progress.check(&replication("a", 1_000), start), Err(Lag::OtherEpoch));
        assert_eq!(progress.check(&replication("b", 10), start), Ok(()));
    }

    #[test]
    fn reports_do_not_pile_up() {
        let (progress, start) = (ReplicationProgress::default(), Instant::now());
        for millis in 0..100_000 {
            progress.observe(&replication("a", millis), start + Duration::from_millis(millis));
        }
        assert!(progress.0.lock().offsets.len() <= 32);
    }
}
