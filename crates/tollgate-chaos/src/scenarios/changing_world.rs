//! Several changes under continuous load: a rollout from memcached to shards, a killed primary, a
//! frozen primary that returns, and an added shard. The nodes are processes with policy files, as
//! in production. Callers send requests to the HTTP listeners of the nodes, and the answers are
//! checked.

use tollgate::model::Cost;
use tollgate_redis::LinkLimits;
use tollgate_stores::rebalance::max_double_count;

use super::*;
use crate::load::CALLERS;
use crate::world::{Files, MonitoredPair, Sentinels, WorldFleet, WorldNode};

/// The steps of the rollout to the shards, in percent of subjects.
const STEPS: [u64; 4] = [1, 20, 50, 100];

type World<'s> = Trial<'s, WorldFleet>;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let old = site.memcached().await?;
    let mut watched = [
        MonitoredPair { name: "a", pair: site.pair().await? },
        MonitoredPair { name: "b", pair: site.pair().await? },
    ];
    let sentinels = Sentinels::start(site, &watched).await?;
    let files = Files::new(site, &old, &sentinels, &watched)?;
    let fleet = WorldFleet::start(site, &files.rolled_out(0)).await?;
    let served = async || fleet.all(async |node| node.is_served().await).await;
    until("that all nodes reach their stores", served).await?;
    let world = World::of(site, fleet).await?;

    roll_out(&world, &files).await?;
    let before = world.load.fallback();
    let [a, b] = &mut watched;
    let lost_with_a = kill_primary(&world, a).await?;
    let fallback = world.load.fallback() - before;
    let (lost_with_b, late) = freeze_and_thaw(&world, b).await?;
    let added = site.server(&[]).await?;
    add_shard(&world, &files.with_shard("c", &added.url())).await?;

    let rolled_out = world.nodes.sum(async |node| node.rolled_out().await).await?;
    let transferred = world.nodes.sum(async |node| node.transferred().await).await?;
    let refunded_units = world.nodes.refunded_units();
    let figures = vec![
        Figure::fault_seen("windows moved from memcached", rolled_out),
        Figure::fault_seen("decisions by nodes alone", fallback),
        Figure::at_most("calls to a primary that was replaced", late, 0),
        Figure::fault_seen("windows moved to the new shard", transferred),
        Figure::fault_seen("units given back", refunded_units.iter().sum()),
    ];
    let did = "moved from memcached to two shards, killed a primary, froze and revived another, \
               and added a shard";
    let lost = lost_with_a.max(lost_with_b);
    let moved = max_double_count(CALLERS as u64, Cost::ONE);
    let held_back = moved + refunded_units.into_iter().max().unwrap_or_default();
    Ok(world.end(ScenarioReport { did, figures, lost, losses: 0, held_back }).await)
}

/// Moves all subjects to the shards by increasing percentages, through each node's policy file. No
/// requests are sent from the change of the first file until the last node has applied its file.
/// Without this pause, nodes that disagree on the percentage could admit units beyond a limit, and
/// these units have a separate bound (`max_over_admission`).
async fn roll_out(world: &World<'_>, files: &Files) -> Result<(), ChaosError> {
    for percent in STEPS {
        let hushed = world.load.pause_load().await;
        for node in world.nodes.iter() {
            node.reload(&files.rolled_out(percent)).await?;
        }
        let turned =
            async || world.nodes.all(async |node| Ok(node.percent().await? == Some(percent))).await;
        until("that all nodes go by the percentage in their files", turned).await?;
        drop(hushed);
        world.part().await;
    }
    Ok(())
}

/// Kills the primary and waits until all nodes charge the replica, which the sentinels promote.
/// Returns the number of units that may be lost.
async fn kill_primary(world: &World<'_>, watched: &mut MonitoredPair) -> Result<u64, ChaosError> {
    let (name, Pair { primary, replica }) = (watched.name, &mut watched.pair);
    let mark = world.mark();
    primary.is_followed().await?;
    primary.kill()?;
    let lost = world.max_lost_units(mark);
    charge(world, name, &replica.url()).await?;
    world.part().await;
    Ok(lost)
}

/// Freezes the primary until its replica is promoted, and lets the old primary continue after the
/// promotion. Returns the number of units that may be lost, and the number of calls that charged
/// the old primary after all nodes had time to detect the promotion.
async fn freeze_and_thaw(
    world: &World<'_>,
    watched: &MonitoredPair,
) -> Result<(u64, u64), ChaosError> {
    let (name, Pair { primary, replica }) = (watched.name, &watched.pair);
    let mark = world.mark();
    primary.is_followed().await?;
    primary.freeze()?;
    let lost = world.max_lost_units(mark);
    charge(world, name, &replica.url()).await?;
    primary.thaw()?;
    tokio::time::sleep(LinkLimits::default().gray_failure_max()).await;
    let ran = primary.ran(&CHARGES).await?;
    world.part().await;
    Ok((lost, primary.ran(&CHARGES).await? - ran))
}

/// Adds a shard. First, the nodes are restarted one after the other with the policy `text`. When
/// the nodes detect that no node uses the old shard map, they let the new owners of the subjects
/// decide.
async fn add_shard(world: &World<'_>, text: &str) -> Result<(), ChaosError> {
    for node in world.nodes.iter() {
        node.restart(text).await?;
        until("that a node reaches its shards", async || node.is_served().await).await?;
        world.part().await;
    }
    let led = async || world.nodes.all(async |node| node.leads().await).await;
    until("that the new owners decide", led).await?;
    world.part().await;
    Ok(())
}

async fn charge(world: &World<'_>, name: &str, url: &str) -> Result<(), ChaosError> {
    let charges = async || {
        let found = async |node: &WorldNode| Ok(node.primary(name).await?.as_deref() == Some(url));
        world.nodes.all(found).await
    };
    until("that all nodes charge the promoted server", charges).await
}
