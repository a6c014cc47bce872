//! The requirements for the clocks of nodes and servers.

use tollgate_core::Timestamp;

use super::Judge;
use crate::node::NodeTimes;
use crate::plan::{Action, Kind, StoreKind};

/// Half of the default `skew_max`, in ms. If the clocks of a node and a server differ by more, the
/// node decides by the server's clock.
const TOLERATED: u64 = 2_500;

/// The largest error in ms with which a node estimates the clock of a Redis server: half of a round
/// trip, the drift since the last reply, and the resolution of the clocks.
const REDIS_ERROR: u64 = 8;

/// The largest error in ms with which a node estimates the clock of a memcached server, which
/// reports whole seconds.
const MEMCACHED_ERROR: u64 = 2_250;

/// The change of a clock in ms that a node must detect.
const CERTAIN_STEP: u64 = 100;

impl Judge {
    /// Checks the clocks at the end of a world with wrong clocks of servers. `servers` contains the
    /// times of the primaries.
    pub(crate) fn check_clocks(&self, nodes: &[NodeTimes], servers: &[Timestamp]) {
        for (number, times) in nodes.iter().enumerate() {
            if let Some(what) = self.wrong_clock(times, servers) {
                self.broken(format_args!("node {number}: {what}: {times:?}, servers {servers:?}"));
            }
        }
    }

    /// Returns a description of what is wrong with the clocks of a node.
    fn wrong_clock(&self, times: &NodeTimes, servers: &[Timestamp]) -> Option<&'static str> {
        let plan = &self.plan;
        let steps = plan.actions.iter().filter_map(|(_, action)| match action {
            Action::StepServer { millis, .. } => Some(millis.unsigned_abs()),
            _ => None,
        });
        if times.steps > 0 && (steps.clone().next().is_none() || plan.store == StoreKind::Memcached)
        {
            return Some("detected a change of a clock that was not set");
        }
        // Other faults replace the connection, and with it the estimate that shows the change.
        let only_steps = plan.actions.len() == steps.clone().count();
        if only_steps && steps.max() > Some(CERTAIN_STEP) && times.steps == 0 {
            return Some("did not detect the change of a clock");
        }
        // With several servers, a node has several times.
        let [server] = servers else { return None };
        if plan.kind != Kind::ServerClocks {
            return None;
        }
        let apart = |one: Timestamp, other: Timestamp| one.as_millis().abs_diff(other.as_millis());
        let error = match plan.store {
            StoreKind::Memcached => MEMCACHED_ERROR,
            StoreKind::Redis | StoreKind::Cluster => REDIS_ERROR,
        };
        let difference = apart(times.own, *server);
        if difference > TOLERATED && apart(times.decides, *server) > error {
            return Some("does not decide by the clock of the server");
        }
        if difference + error <= TOLERATED - error && times.decides != times.own {
            return Some("does not decide by its own clock");
        }
        None
    }
}
