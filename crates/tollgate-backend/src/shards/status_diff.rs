//! Detection of changes in a shard's status since the last check.

use std::fmt;
use std::time::Duration;

use tollgate_redis::{BatcherStatus, CircuitState, StepRuntime};
use tollgate_stores::failover_replay::ReplayCounts;

use crate::status::{ShardStatus, reached};

/// The status of a shard at the last check.
#[derive(Debug)]
pub(super) struct StatusDiff {
    /// The states of the batchers. The batcher of the primary is the first.
    batchers: Vec<Batcher>,
    clock: Agreement,
    /// The servers that reported themselves as primary. Empty if at most one server did.
    split: Vec<String>,
    windows_lost: u64,
    replayed: ReplayCounts,
    skew_max: Duration,
}

/// A change of a shard that is logged for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The shard's primary answers. `before` is the address of the previous primary, if another
    /// server was the primary before.
    Connected { address: String, runs: StepRuntime, before: Option<String> },
    /// No primary of the shard answers.
    Lost { reason: String },
    /// The shard's primary answers, but its connection was lost `times` times since the last check.
    Flapping { address: String, times: u64 },
    /// A replica serves reads now.
    ReplicaFound { address: String },
    /// A replica no longer serves reads.
    ReplicaLost { reason: String },
    /// Counters of the shard were lost `times` times since the last check.
    WindowsLost { times: u64, reason: String },
    /// This node replayed `units` units that the shard lacked, on `limits` limits and subjects.
    Replayed { units: u64, limits: u64 },
    /// The replay did not finish in time for `limits` limits and subjects.
    Abandoned { limits: u64 },
    /// Several servers of the shard are primaries.
    Split { primaries: Vec<String> },
    /// Only one server of the shard is a primary again.
    SplitEnded,
    /// The shard's clock and this machine's clock differ by more than the limits permit.
    ClockDiffers { by: Duration, allowed: Duration },
    /// The shard's clock and this machine's clock agree again.
    ClockAgrees,
}

#[derive(Debug, Default)]
struct Batcher {
    reachability: Reachability,
    /// The address of the primary at the last check at which a primary was connected. `None` if no
    /// primary was connected at any check.
    address: Option<String>,
    opened: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reachability {
    /// The shard was not checked yet.
    #[default]
    Unreported,
    /// The shard was checked once, when it may not have had time to connect. A missing connection
    /// is not reported yet.
    Pending,
    Up,
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    Agrees,
    Differs,
}

impl StatusDiff {
    /// Creates the state of a shard without any reported change.
    pub(super) const fn new(skew_max: Duration) -> Self {
        Self {
            batchers: Vec::new(),
            clock: Agreement::Agrees,
            split: Vec::new(),
            windows_lost: 0,
            replayed: ReplayCounts::NOTHING,
            skew_max,
        }
    }

    /// Sets the permitted clock difference from now on.
    pub(super) const fn allow(&mut self, skew_max: Duration) {
        self.skew_max = skew_max;
    }

    /// Returns the changes in `status` since the last check: at most one change for each server,
    /// one for losses, two for replays, one for the clock, and one for the number of primaries.
    pub(super) fn observe(&mut self, status: &ShardStatus) -> Vec<Change> {
        self.batchers.resize_with(status.batchers.len(), Batcher::default);
        let mut changes = Vec::new();
        for (index, (seen, batcher)) in self.batchers.iter_mut().zip(&status.batchers).enumerate() {
            let change =
                if index == 0 { seen.primary(batcher, status.runs) } else { seen.replica(batcher) };
            changes.extend(change);
        }
        changes.extend(self.losses(status));
        changes.extend(self.replays(status));
        changes.extend(self.clock(status));
        changes.extend(self.split(status));
        changes
    }

    fn losses(&mut self, status: &ShardStatus) -> Option<Change> {
        let before = std::mem::replace(&mut self.windows_lost, status.windows_lost);
        let times = status.windows_lost.saturating_sub(before);
        let reason = status.last_loss.as_ref()?.to_string();
        (times > 0).then_some(Change::WindowsLost { times, reason })
    }

    fn replays(&mut self, status: &ShardStatus) -> impl Iterator<Item = Change> + use<> {
        let (before, now) =
            (std::mem::replace(&mut self.replayed, status.replayed), status.replayed);
        let limits = now.limits.saturating_sub(before.limits);
        let units = now.units.saturating_sub(before.units);
        let abandoned = now.abandoned.saturating_sub(before.abandoned);
        let replayed = (limits > 0).then_some(Change::Replayed { units, limits });
        let abandoned = (abandoned > 0).then_some(Change::Abandoned { limits: abandoned });
        replayed.into_iter().chain(abandoned)
    }

    fn split(&mut self, status: &ShardStatus) -> Option<Change> {
        let several = status.claimed_by.len() > 1;
        let primaries = if several { status.claimed_by.clone() } else { Vec::new() };
        let before = std::mem::replace(&mut self.split, primaries.clone());
        match (before == primaries, several) {
            (true, _) => None,
            (false, true) => Some(Change::Split { primaries }),
            (false, false) => Some(Change::SplitEnded),
        }
    }

    fn clock(&mut self, status: &ShardStatus) -> Option<Change> {
        let skew = status.skew();
        match self.clock {
            Agreement::Agrees if skew > self.skew_max => {
                self.clock = Agreement::Differs;
                Some(Change::ClockDiffers { by: skew, allowed: self.skew_max })
            }
            // The clocks count as equal again below half of the permitted difference, so a clock at
            // the permitted difference is not logged repeatedly.
            Agreement::Differs if status.clock_offset.is_some() && skew <= self.skew_max / 2 => {
                self.clock = Agreement::Agrees;
                Some(Change::ClockAgrees)
            }
            Agreement::Agrees | Agreement::Differs => None,
        }
    }
}

impl Batcher {
    fn primary(&mut self, batcher: &BatcherStatus, runs: StepRuntime) -> Option<Change> {
        let times =
            batcher.opened.saturating_sub(std::mem::replace(&mut self.opened, batcher.opened));
        let Some(address) = reached(batcher).map(str::to_owned) else {
            // While a new connection is attempted, it is not yet certain that the shard is lost.
            if self.reachability == Reachability::Down
                || self.reachability == Reachability::Up
                    && batcher.circuit_state == CircuitState::Seeking
            {
                return None;
            }
            self.reachability = Reachability::Down;
            return Some(Change::Lost { reason: reason(batcher) });
        };
        let before = self.address.replace(address.clone()).filter(|before| *before != address);
        match std::mem::replace(&mut self.reachability, Reachability::Up) {
            Reachability::Up if before.is_none() && times == 0 => None,
            Reachability::Up if before.is_none() => Some(Change::Flapping { address, times }),
            Reachability::Unreported
            | Reachability::Pending
            | Reachability::Up
            | Reachability::Down => Some(Change::Connected { address, runs, before }),
        }
    }

    fn replica(&mut self, batcher: &BatcherStatus) -> Option<Change> {
        match (self.reachability, reached(batcher)) {
            (Reachability::Up, Some(_)) | (Reachability::Down, None) => None,
            (_, Some(address)) => {
                self.reachability = Reachability::Up;
                Some(Change::ReplicaFound { address: address.to_owned() })
            }
            // A replica is connected after its primary, so a replica may be found a little later
            // than its primary.
            (Reachability::Unreported, None) => {
                self.reachability = Reachability::Pending;
                None
            }
            (Reachability::Pending | Reachability::Up, None)
                if batcher.circuit_state == CircuitState::Open =>
            {
                self.reachability = Reachability::Down;
                Some(Change::ReplicaLost { reason: reason(batcher) })
            }
            (Reachability::Pending | Reachability::Up, None) => None,
        }
    }
}

fn reason(batcher: &BatcherStatus) -> String {
    batcher
        .last_error
        .as_ref()
        .map_or_else(|| "it has not answered yet".into(), ToString::to_string)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected { address, runs, before } => {
                write!(f, "connected to {address}, where each decision runs as a {runs}")?;
                before.iter().try_for_each(|before| write!(f, "; before, it was {before}"))
            }
            Self::Lost { reason } => write!(
                f,
                "no primary answers, so each rule's on_failure decides until one does: {reason}"
            ),
            Self::Flapping { address, times } => {
                write!(
                    f,
                    "{address} responds again; it failed {times} times since the previous check"
                )
            }
            Self::ReplicaFound { address } => write!(f, "reading from the replica {address}"),
            Self::ReplicaLost { reason } => {
                write!(f, "a replica is not used for reads, other servers are: {reason}")
            }
            Self::WindowsLost { times: 1, reason } => {
                write!(f, "the server lost counters, and their windows start again: {reason}")
            }
            Self::WindowsLost { times, reason } => write!(
                f,
                "the server lost counters {times} times, and their windows start again; the last \
                 time: {reason}"
            ),
            Self::Replayed { units, limits } => write!(
                f,
                "replayed {units} units of {limits} limits and subjects to the new primary, which \
                 had not received them"
            ),
            Self::Abandoned { limits } => write!(
                f,
                "the replay to the new primary timed out for {limits} limits and subjects: their \
                 usage can be admitted once more; check the load of the primary"
            ),
            Self::Split { primaries } => write!(
                f,
                "{} are primaries of one shard, and all nodes charge one of them: run REPLICAOF \
                 on the others; tollgate doctor names the one that nodes charge",
                primaries.join(" and ")
            ),
            Self::SplitEnded => f.write_str("the shard has a single primary again"),
            Self::ClockDiffers { by, allowed } => write!(
                f,
                "the server's clock and this machine's differ by {by:?}, more than the {allowed:?} \
                 of skew_max: this node uses the server's clock and is not ready until they agree; \
                 synchronize the clocks, or set `clock: store`"
            ),
            Self::ClockAgrees => f.write_str(
                "the server's clock and this machine's agree again; using this machine's",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate::observe::Observed;
    use tollgate_redis::{BatcherCounts, ClockOffset, DataLoss};

    use super::*;

    const SKEW_MAX: Duration = Duration::from_secs(5);

    fn batcher(address: Option<&str>, circuit_state: CircuitState, opened: u64) -> BatcherStatus {
        BatcherStatus {
            address: address.map(str::to_owned),
            circuit_state,
            opened,
            clock_steps: 0,
            round_trip: None,
            counts: BatcherCounts::default(),
            last_error: None,
        }
    }

    fn status(batchers: &[BatcherStatus]) -> ShardStatus {
        ShardStatus {
            name: "a".into(),
            runs: StepRuntime::Function,
            batchers: batchers.to_vec(),
            clock_offset: None,
            clock_overridden: false,
            claimed_by: Vec::new(),
            windows_lost: 0,
            last_loss: None,
            replayed: ReplayCounts::NOTHING,
            cluster: None,
            took: Observed::NOTHING,
        }
    }

    fn connected(address: &str, before: Option<&str>) -> Change {
        let (address, before) = (address.to_owned(), before.map(str::to_owned));
        Change::Connected { address, runs: StepRuntime::Function, before }
    }

    /// Returns the only change, or `None` if there is no change.
    fn only(mut changes: Vec<Change>) -> Option<Change> {
        let change = changes.pop();
        assert_eq!(changes, []);
        change
    }

    #[test]
    fn a_primary_is_informed_of_when_something_changes() {
        let mut seen = StatusDiff::new(SKEW_MAX);
        let mut observe = |batcher| only(seen.observe(&status(&[batcher])));
        let lost = Change::Lost { reason: "it has not answered yet".into() };
        assert_eq!(observe(batcher(None, CircuitState::Seeking, 0)), Some(lost.clone()));
        assert_eq!(observe(batcher(None, CircuitState::Open, 1)), None);
        assert_eq!(
            observe(batcher(Some("one"), CircuitState::Closed, 1)),
            Some(connected("one", None))
        );
        assert_eq!(observe(batcher(Some("one"), CircuitState::Closed, 1)), None);
        assert_eq!(
            observe(batcher(None, CircuitState::Seeking, 1)),
            None,
            "it may be found at once"
        );
        assert_eq!(
            observe(batcher(Some("two"), CircuitState::Closed, 1)),
            Some(connected("two", Some("one")))
        );
        assert_eq!(observe(batcher(Some("two"), CircuitState::Open, 2)), Some(lost));
        assert_eq!(
            observe(batcher(Some("two"), CircuitState::Closed, 2)),
            Some(connected("two", None))
        );
        let unsteady = Change::Flapping { address: "two".into(), times: 3 };
        assert_eq!(observe(batcher(Some("two"), CircuitState::Closed, 5)), Some(unsteady));
        assert_eq!(observe(batcher(Some("two"), CircuitState::Closed, 5)), None);
    }

    #[test]
    fn replicas_are_informed_of_once_they_are_known() {
        let mut seen = StatusDiff::new(SKEW_MAX);
        let up = batcher(Some("one"), CircuitState::Closed, 0);
        let mut observe = |replica| only(seen.observe(&status(&[up.clone(), replica])));
        assert_eq!(observe(batcher(None, CircuitState::Seeking, 0)), Some(connected("one", None)));
        let found = Change::ReplicaFound { address: "copy".into() };
        assert_eq!(observe(batcher(Some("copy"), CircuitState::Closed, 0)), Some(found.clone()));
        assert_eq!(observe(batcher(None, CircuitState::Seeking, 0)), None);
        let lost = Change::ReplicaLost { reason: "it has not answered yet".into() };
        assert_eq!(observe(batcher(None, CircuitState::Open, 1)), Some(lost));
        assert_eq!(observe(batcher(None, CircuitState::Open, 2)), None);
        assert_eq!(observe(batcher(Some("copy"), CircuitState::Closed, 2)), Some(found));
    }

    #[test]
    fn a_replica_has_until_the_second_look_to_be_found() {
        let mut seen = StatusDiff::new(SKEW_MAX);
        let up = batcher(Some("one"), CircuitState::Closed, 0);
        let mut observe = |replica| only(seen.observe(&status(&[up.clone(), replica])));
        assert_eq!(observe(batcher(None, CircuitState::Open, 1)), Some(connected("one", None)));
        let lost = Change::ReplicaLost { reason: "it has not answered yet".into() };
        assert_eq!(observe(batcher(None, CircuitState::Open, 2)), Some(lost));
    }

    #[test]
    fn each_loss_is_informed_of_once() {
        let mut seen = StatusDiff::new(SKEW_MAX);
        let up = batcher(Some("one"), CircuitState::Closed, 0);
        seen.observe(&status(std::slice::from_ref(&up)));
        let mut observe = |windows_lost, loss: DataLoss| {
            let up = status(std::slice::from_ref(&up));
            only(seen.observe(&ShardStatus { windows_lost, last_loss: Some(loss), ..up }))
        };
        let reason = DataLoss::Flushed.to_string();
        assert_eq!(observe(1, DataLoss::Flushed), Some(Change::WindowsLost { times: 1, reason }));
        assert_eq!(observe(1, DataLoss::Flushed), None);
        let reason = DataLoss::Restarted.to_string();
        assert_eq!(observe(3, DataLoss::Restarted), Some(Change::WindowsLost { times: 2, reason }));
    }

    #[test]
    fn what_was_repaired_is_informed_of_once() {
        let mut seen = StatusDiff::new(SKEW_MAX);
        let up = batcher(Some("one"), CircuitState::Closed, 0);
        seen.observe(&status(std::slice::from_ref(&up)));
        let mut observe = |replayed| {
            let up = status(std::slice::from_ref(&up));
            seen.observe(&ShardStatus { replayed, ..up })
        };
        let first = ReplayCounts { replays: 1, limits: 2, units: 7, abandoned: 0 };
        assert_eq!(observe(first), [Change::Replayed { units: 7, limits: 2 }]);
        assert_eq!(observe(ReplayCounts { replays: 2, ..first }), []);
        let second = ReplayCounts { replays: 3, limits: 3, units: 9, abandoned: 4 };
        let changes = [Change::Replayed { units: 2, limits: 1 }, Change::Abandoned { limits: 4 }];
        assert_eq!(observe(second), changes);
    }

    #[test]
    fn a_clock_is_informed_of_at_the_edge_and_when_it_is_well_again() {
        let mut seen = StatusDiff::new(SKEW_MAX);
        let up = batcher(Some("one"), CircuitState::Closed, 0);
        seen.observe(&status(std::slice::from_ref(&up)));
        let mut observe = |millis, uncertainty| {
            let offset = Some(ClockOffset { millis, uncertainty });
            let up = up.clone();
            only(seen.observe(&ShardStatus { clock_offset: offset, ..status(&[up]) }))
        };
        assert_eq!(observe(-5_010, 10), None);
        let by = Duration::from_millis(5_001);
        assert_eq!(observe(-5_011, 10), Some(Change::ClockDiffers { by, allowed: SKEW_MAX }));
        assert_eq!(observe(5_500, 10), None);
        assert_eq!(observe(4_999, 0), None, "nearly as wrong as it was");
        assert_eq!(observe(2_500, 0), Some(Change::ClockAgrees));
    }
}
