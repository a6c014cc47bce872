//! Everything changes under one load: a move from memcached to shards, a primary dies, another one
//! freezes and comes back, a shard is added. Each node goes by a policy file, as users write it.

use std::sync::Arc;

use tollgate::HashKey;
use tollgate::core::Cost;
use tollgate::store::Percent;
use tollgate::store::carry::held_back_at_most;
use tollgate_redis::LinkLimits;

use super::*;
use crate::chaos::load::CALLERS;
use crate::chaos::world::{Files, Sentinels, Watched, WorldNode};

/// The commands that charge.
const CHARGES: [&str; 2] = ["fcall", "evalsha"];
/// The steps of the move to the shards, of a hundred subjects.
const STEPS: [u8; 4] = [1, 20, 50, 100];

type World<'s> = Trial<'s, Arc<WorldNode>>;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let old = site.memcached().await?;
    let mut watched = [
        Watched { name: "a", pair: site.pair().await? },
        Watched { name: "b", pair: site.pair().await? },
    ];
    let sentinels = Sentinels::start(site, &watched).await?;
    let files = Files::new(&old, &sentinels, &watched);
    let (key, mut nodes) = (HashKey::random(), Vec::new());
    for _ in 0..NODES {
        let file = site.room()?.join("policy.yaml");
        nodes.push(Arc::new(WorldNode::start(key.clone(), file, &files.first()).await?));
    }
    let served = async || Ok(nodes.iter().all(|node| node.is_served()));
    until("that all nodes reach their shards", served).await?;
    let world = World::of(site, Fleet::of(nodes.clone(), Files::DEADLINE)?).await?;

    roll_out(&world, &nodes).await;
    let before = world.load.alone();
    let [a, b] = &mut watched;
    let lost_with_a = kill_primary(&world, &nodes, a).await?;
    let alone = world.load.alone() - before;
    let (lost_with_b, late) = freeze_and_thaw(&world, &nodes, b).await?;
    let added = site.server(&[]).await?;
    add_shard(&world, &nodes, &files.with_shard("c", &added.url())).await?;

    let figures = vec![
        Figure::bites("windows moved from memcached", moved(&nodes, WorldNode::rolled_out)),
        Figure::bites("decisions by nodes alone", alone),
        Figure::at_most("calls to a primary that was replaced", late, 0),
        Figure::bites("windows moved to the new shard", moved(&nodes, WorldNode::carried)),
    ];
    let did = "moved from memcached to two shards, killed a primary, froze and revived another, \
               and added a shard";
    let lost = lost_with_a.max(lost_with_b);
    let held_back = held_back_at_most(CALLERS as u64, Cost::ONE);
    Ok(world.end(Told { did, figures, lost, losses: 0, held_back }).await)
}

/// Moves all subjects to the shards, step by step, for all nodes from one decision to the next: what
/// nodes admit that disagree is a bound of its own.
async fn roll_out(world: &World<'_>, nodes: &[Arc<WorldNode>]) {
    for percent in STEPS.into_iter().filter_map(Percent::new) {
        let hushed = world.load.hush().await;
        nodes.iter().for_each(|node| node.turn(percent));
        drop(hushed);
        world.part().await;
    }
}

/// Kills the primary, and waits for what the sentinels put in its place. Returns the units that may
/// be lost.
async fn kill_primary(
    world: &World<'_>,
    nodes: &[Arc<WorldNode>],
    watched: &mut Watched,
) -> Result<u64, ChaosError> {
    let (name, Pair { primary, replica }) = (watched.name, &mut watched.pair);
    let mark = world.mark();
    primary.is_followed().await?;
    primary.kill()?;
    let lost = world.lost_at_most(mark);
    charge(nodes, name, &replica.url()).await?;
    world.part().await;
    Ok(lost)
}

/// Freezes the primary until another one is promoted, and lets it go on. Returns the units that may
/// be lost, and the calls that it was charged after all nodes had the time to know better.
async fn freeze_and_thaw(
    world: &World<'_>,
    nodes: &[Arc<WorldNode>],
    watched: &Watched,
) -> Result<(u64, u64), ChaosError> {
    let (name, Pair { primary, replica }) = (watched.name, &watched.pair);
    let mark = world.mark();
    primary.is_followed().await?;
    primary.freeze()?;
    let lost = world.lost_at_most(mark);
    charge(nodes, name, &replica.url()).await?;
    primary.thaw()?;
    tokio::time::sleep(LinkLimits::default().gray_failure_max()).await;
    let ran = primary.ran(&CHARGES).await?;
    world.part().await;
    Ok((lost, primary.ran(&CHARGES).await? - ran))
}

/// Adds a shard: node after node is started anew under `store`, and then the nodes find by
/// themselves that nobody uses the old map, and let the new owners decide.
async fn add_shard(
    world: &World<'_>,
    nodes: &[Arc<WorldNode>],
    store: &str,
) -> Result<(), ChaosError> {
    for node in nodes {
        node.restart(store).await?;
        until("that a node reaches its shards", async || Ok(node.is_served())).await?;
        world.part().await;
    }
    for node in nodes {
        until("that the new owners decide", async || Ok(node.leads())).await?;
    }
    world.part().await;
    Ok(())
}

async fn charge(nodes: &[Arc<WorldNode>], name: &str, url: &str) -> Result<(), ChaosError> {
    let found = async || Ok(nodes.iter().all(|node| node.primary(name).as_deref() == Some(url)));
    until("that all nodes charge the promoted server", found).await
}

fn moved(nodes: &[Arc<WorldNode>], count: impl Fn(&WorldNode) -> u64) -> u64 {
    nodes.iter().map(|node| count(node)).sum()
}
