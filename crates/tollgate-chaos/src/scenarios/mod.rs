//! The scenarios, one a file: each does one thing to the world, and tells what was seen.

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
mod replies_cut;
mod restarted;
mod server_busy;
mod slow_replies;
mod step_forgotten;

use clap::ValueEnum;
use tollgate_conformance::Figure;

use super::error::ChaosError;
use super::excess::Excess;
use super::finding::Finding;
use super::fleet::Fleet;
use super::network::{LinkMode, Network};
use super::nodes::Nodes;
use super::policy::{DEADLINE, HOUR, NODES, PATIENT, SECOND, SECOND_QUOTA, redis};
use super::server::Server;
use super::site::{Length, Pair, Site};
use super::trial::{ScenarioReport, Trial};
use super::wait::until;

/// What happens to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// A primary dies, and its replica is promoted
    PrimaryKilled,
    /// A primary's machine dies, and what was on its way to the replica is lost
    HostDies,
    /// A primary freezes, and goes on
    PrimaryFrozen,
    /// A frozen primary comes back after its replica was promoted
    FrozenReturns,
    /// Every reply is 30 ms late
    SlowReplies,
    /// Calls end in the server after nobody waits for them
    ClientsPaused,
    /// The network loses everything, and no socket tells of it
    NetworkSilent,
    /// Connections end in the midst of replies
    RepliesCut,
    /// The server forgets scripts and functions every 10 ms
    StepForgotten,
    /// The primary becomes a replica, with connections open
    PrimaryDemoted,
    /// The server has no memory for new keys
    OutOfMemory,
    /// The server drops counters to make room for other keys
    Evicted,
    /// The primary takes no writes, since its replica does not keep up
    NoReplicas,
    /// A script of somebody else's keeps the server busy
    ServerBusy,
    /// Every key is deleted
    Flushed,
    /// The server is killed, and loads its data for a while
    Restarted,
    /// A memcached is killed, and begins anew
    MemcachedRestarted,
    /// The clocks of two nodes disagree, and one steps back
    ClocksDisagree,
    /// All under one load: from memcached to shards, a death, a freeze, one shard more
    ChangingWorld,
}

impl Scenario {
    /// All of them, in the order in which they run.
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// As flags and reports name it.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Does to the world what it says, under load.
    ///
    /// # Errors
    /// If it could not be carried out; what it found is no error.
    pub(crate) async fn run(self, site: &Site) -> Result<Finding, ChaosError> {
        match self {
            Self::PrimaryKilled => primary_killed::run(site).await,
            Self::HostDies => host_dies::run(site).await,
            Self::PrimaryFrozen => primary_frozen::run(site).await,
            Self::FrozenReturns => frozen_returns::run(site).await,
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

/// The words of a shard that is this primary alone.
fn primary(url: &str) -> String {
    format!("{{ primary: \"{url}\" }}")
}
