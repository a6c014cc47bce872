//! Everything changes under one load: a move from memcached to shards, a primary dies, another one
//! freezes and comes back, a shard is added.

use std::sync::Arc;
use std::time::Duration;

use tollgate::HashKey;
use tollgate::store::Percent;
use tollgate_memcached::{Memcached, ServerSettings};
use tollgate_redis::{LinkLimits, ShardSettings};

use super::*;
use crate::chaos::world::{MemcachedServer, Sentinels, Watched, WorldStore, shard_of};

/// Long enough to carry a cell on a busy machine; a store that dies is told of at once.
const DEADLINE: Duration = Duration::from_millis(500);
/// The commands that charge.
const CHARGES: [&str; 2] = ["fcall", "evalsha"];
/// The steps of the move to the shards, of a hundred subjects.
const STEPS: [u8; 4] = [1, 20, 50, 100];

type World<'s> = Trial<'s, Arc<WorldStore>>;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let old = site.memcached().await?;
    let mut watched = [
        Watched { name: "a", pair: site.pair().await? },
        Watched { name: "b", pair: site.pair().await? },
    ];
    let sentinels = Sentinels::start(site, &watched).await?;
    let key = HashKey::random();
    let mut stores = Vec::new();
    for _ in 0..NODES {
        stores.push(Arc::new(open(&key, &old, &sentinels).await?));
    }
    let fleet = Fleet::of(stores.clone(), DEADLINE)?;
    let world = World::of(site, fleet).await?;

    roll_out(&world, &stores).await;
    let before = world.load.alone();
    let [a, b] = &mut watched;
    let lost_with_a = kill_primary(&world, &stores, a).await?;
    let alone = world.load.alone() - before;
    let (lost_with_b, late) = freeze_and_thaw(&world, &stores, b).await?;
    let added = site.server(&[]).await?;
    add_shard(&world, &stores, &key, &added.url()).await?;

    let figures = vec![
        Figure::bites("windows moved from memcached", moved(&stores, WorldStore::rolled_out)),
        Figure::bites("decisions by nodes alone", alone),
        Figure::at_most("calls to a primary that was replaced", late, 0),
        Figure::bites("windows moved to the new shard", moved(&stores, WorldStore::carried)),
    ];
    let did = "moved from memcached to two shards, killed a primary, froze and revived another, \
               and added a shard";
    let lost = lost_with_a.max(lost_with_b);
    Ok(world.end(Told { did, figures, lost, losses: 0 }).await)
}

async fn open(
    key: &HashKey,
    old: &MemcachedServer,
    sentinels: &Sentinels,
) -> Result<WorldStore, ChaosError> {
    let address = old.address().parse().map_err(ChaosError::Address)?;
    let keys = tollgate_memcached::Keys::new(key.clone());
    let memcached = Memcached::open(&ServerSettings::new(address), keys).with_deadline(DEADLINE);
    let mut shards = Vec::new();
    for name in ["a", "b"] {
        shards.push(shard_of(key, name, &sentinels.settings(name)?, DEADLINE).await?);
    }
    WorldStore::new(key.clone(), memcached, shards, DEADLINE)
}

/// Moves all subjects to the shards, step by step, for all nodes from one decision to the next: what
/// nodes admit that disagree is a bound of its own.
async fn roll_out(world: &World<'_>, stores: &[Arc<WorldStore>]) {
    for percent in STEPS.into_iter().filter_map(Percent::new) {
        let hushed = world.load.hush().await;
        stores.iter().for_each(|store| store.turn(percent));
        drop(hushed);
        world.part().await;
    }
}

/// Kills the primary, and waits for what the sentinels put in its place. Returns the units that may
/// be lost.
async fn kill_primary(
    world: &World<'_>,
    stores: &[Arc<WorldStore>],
    watched: &mut Watched,
) -> Result<u64, ChaosError> {
    let (name, Pair { primary, replica }) = (watched.name, &mut watched.pair);
    let mark = world.mark();
    primary.is_followed().await?;
    primary.kill()?;
    let lost = world.lost_at_most(mark);
    leads(stores, name, &replica.url()).await?;
    world.part().await;
    Ok(lost)
}

/// Freezes the primary until another one is promoted, and lets it go on. Returns the units that may
/// be lost, and the calls that it was charged after all nodes had the time to know better.
async fn freeze_and_thaw(
    world: &World<'_>,
    stores: &[Arc<WorldStore>],
    watched: &Watched,
) -> Result<(u64, u64), ChaosError> {
    let (name, Pair { primary, replica }) = (watched.name, &watched.pair);
    let mark = world.mark();
    primary.is_followed().await?;
    primary.freeze()?;
    let lost = world.lost_at_most(mark);
    leads(stores, name, &replica.url()).await?;
    primary.thaw()?;
    tokio::time::sleep(LinkLimits::default().gray_failure_max()).await;
    let ran = primary.ran(&CHARGES).await?;
    world.part().await;
    Ok((lost, primary.ran(&CHARGES).await? - ran))
}

/// Adds a shard: node after node learns of it, and then node after node lets the new owners decide.
async fn add_shard(
    world: &World<'_>,
    stores: &[Arc<WorldStore>],
    key: &HashKey,
    url: &str,
) -> Result<(), ChaosError> {
    let settings = ShardSettings::new(url.parse().map_err(ChaosError::Endpoint)?);
    for store in stores {
        store.follow(shard_of(key, "c", &settings, DEADLINE).await?)?;
        world.part().await;
    }
    for store in stores {
        store.lead();
        world.part().await;
    }
    Ok(())
}

async fn leads(stores: &[Arc<WorldStore>], name: &str, url: &str) -> Result<(), ChaosError> {
    let found = async || Ok(stores.iter().all(|store| store.primary(name).as_deref() == Some(url)));
    until("that all nodes charge the promoted server", found).await
}

fn moved(stores: &[Arc<WorldStore>], count: impl Fn(&WorldStore) -> u64) -> u64 {
    stores.iter().map(|store| count(store)).sum()
}
