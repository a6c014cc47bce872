//! The scenarios, one per file. Each scenario causes one fault and returns a finding.

mod changing_world;
mod clients_paused;
mod clocks_disagree;
mod evicted;
mod flushed;
mod frozen_returns;
mod host_dies;
mod memcached_restarted;
mod network_silent;
mod no_replicas;
mod out_of_memory;
mod primary_demoted;
mod primary_frozen;
mod primary_killed;
mod primary_returns_empty;
mod replication_missing;
mod replies_cut;
mod restarted;
mod server_busy;
mod slow_replies;
mod step_forgotten;

use clap::ValueEnum;
use tollgate_backend::ShardStatus;
use tollgate_conformance::Figure;

use super::error::ChaosError;
use super::excess::Excess;
use super::finding::{Finding, ScenarioResult};
use super::fleet::Fleet;
use super::network::{LinkMode, Network};
use super::nodes::Nodes;
use super::policy::{DEADLINE, HOUR, LONG_DEADLINE, NODES, SECOND, SECOND_QUOTA, redis};
use super::server::Server;
use super::site::{Length, Pair, Site};
use super::trial::{ScenarioReport, Trial};
use super::wait::until;

/// The least number of decisions in 1,000 that nodes must make without the store during the fault,
/// if the store can make no decision during the fault. If the number is lower, the fault had no
/// effect.
const MOST_FALLBACK: u64 = 500;
/// The least number of decisions in 1,000 that nodes must make without the store during the fault,
/// if the fault includes the time until the store answers again.
const MANY_FALLBACK: u64 = 200;
/// The least number of decisions in 1,000 that nodes must make without the store during the fault,
/// if the store still makes decisions for some clients or for some of the time.
const SOME_FALLBACK: u64 = 20;
/// The server commands that charge limits.
const CHARGES: [&str; 4] = ["fcall", "evalsha", "tollgate.step", "tollgate.tight"];
/// The number of further fleets that are started in addition to the fleet under load, in scenarios
/// that test which server new nodes choose.
const NEW_FLEETS: usize = 3;

/// The fault of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// A primary dies, and its replica is promoted
    PrimaryKilled,
    /// A primary's machine dies, and data in transit to the replica is lost
    HostDies,
    /// A primary freezes and continues
    PrimaryFrozen,
    /// A frozen primary returns after its replica was promoted
    FrozenReturns,
    /// A primary that died comes back empty, and as a primary, after its replica was promoted by hand
    PrimaryReturnsEmpty,
    /// Two servers are configured as a primary and its replica, and replication was never set up
    ReplicationMissing,
    /// Every reply is 30 ms late
    SlowReplies,
    /// Calls complete in the server after their callers timed out
    ClientsPaused,
    /// The network drops everything, and all sockets stay open
    NetworkSilent,
    /// Connections close in the middle of replies
    RepliesCut,
    /// The server loses scripts and functions every 10 ms
    StepForgotten,
    /// The primary becomes a replica, with connections open
    PrimaryDemoted,
    /// The server has no memory for new keys
    OutOfMemory,
    /// The server evicts counters to free memory for other keys
    Evicted,
    /// The primary rejects writes, because its replica lags behind
    NoReplicas,
    /// A script of another program keeps the server busy
    ServerBusy,
    /// Every key is deleted
    Flushed,
    /// The server is killed, and loads its data for a while
    Restarted,
    /// A memcached server is killed and restarts empty
    MemcachedRestarted,
    /// The clocks of two nodes disagree, and one steps back
    ClocksDisagree,
    /// All under one load: memcached to shards, a death, a freeze, an added shard
    ChangingWorld,
}

impl Scenario {
    /// Returns all scenarios in the order in which they run.
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Returns whether the scenario can run with these servers. `module` states whether the servers
    /// have the module, and `tables` whether the nodes store states in the tables of the module. A
    /// scenario in which a server loses the step does not run with the module, because a module
    /// cannot be lost. The scenario with evictions does not run with tables, because a server
    /// chooses at random which tables it evicts.
    pub(crate) fn applies(self, module: bool, tables: bool) -> bool {
        match self {
            Self::StepForgotten | Self::MemcachedRestarted => !module,
            Self::Evicted => !tables,
            _ => true,
        }
    }

    /// Returns the name in flags and reports.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Causes the fault under load.
    ///
    /// # Errors
    /// Returns an error if the scenario could not be run. A bound that did not hold is a finding,
    /// not an error.
    pub(crate) async fn run(self, site: &Site) -> Result<Finding, ChaosError> {
        match self {
            Self::PrimaryKilled => primary_killed::run(site).await,
            Self::HostDies => host_dies::run(site).await,
            Self::PrimaryFrozen => primary_frozen::run(site).await,
            Self::FrozenReturns => frozen_returns::run(site).await,
            Self::PrimaryReturnsEmpty => primary_returns_empty::run(site).await,
            Self::ReplicationMissing => replication_missing::run(site).await,
            Self::SlowReplies => slow_replies::run(site).await,
            Self::ClientsPaused => clients_paused::run(site).await,
            Self::NetworkSilent => network_silent::run(site).await,
            Self::RepliesCut => replies_cut::run(site).await,
            Self::StepForgotten => step_forgotten::run(site).await,
            Self::PrimaryDemoted => primary_demoted::run(site).await,
            Self::OutOfMemory => out_of_memory::run(site).await,
            Self::Evicted => evicted::run(site).await,
            Self::NoReplicas => no_replicas::run(site).await,
            Self::ServerBusy => server_busy::run(site).await,
            Self::Flushed => flushed::run(site).await,
            Self::Restarted => restarted::run(site).await,
            Self::MemcachedRestarted => memcached_restarted::run(site).await,
            Self::ClocksDisagree => clocks_disagree::run(site).await,
            Self::ChangingWorld => changing_world::run(site).await,
        }
    }
}

/// Waits until every node reports `count` primaries of its first shard.
async fn sees_primaries(fleet: &Fleet, count: usize) -> Result<(), ChaosError> {
    let seen = async || {
        let sees = |shards: Vec<ShardStatus>| {
            shards.first().is_some_and(|shard| shard.claimed_by.len() == count)
        };
        Ok(fleet.status().all(sees))
    };
    until("that all nodes see who calls itself primary", seen).await
}

/// Starts [`NEW_FLEETS`] fleets that use the shard with the settings `words`. Returns the number of
/// these fleets in which at least one node does not charge the server at `url`.
async fn fleets_elsewhere(words: &str, url: &str) -> Result<u64, ChaosError> {
    let mut elsewhere = 0;
    for _ in 0..NEW_FLEETS {
        let fleet = Fleet::open(&redis(&[words.to_owned()], DEADLINE)).await?;
        sees_primaries(&fleet, 2).await?;
        elsewhere += u64::from(!fleet.charges(url));
    }
    Ok(elsewhere)
}

/// Returns the settings of a shard that consists only of the primary at `url`.
fn primary(url: &str) -> String {
    format!("{{ primary: \"{url}\" }}")
}
