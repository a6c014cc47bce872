//! Runs the conformance suite of all stores on every wrapper and on nested wrappers.

use std::num::NonZeroU32;

use tollgate::model::Millis;
use tollgate::store::Memory;
use tollgate_conformance::{check, check_one_quota};
use tollgate_stores::deny_cache::{DenyCache, DenyCacheTtl};
use tollgate_stores::fallback::FallbackChoice;
use tollgate_stores::sharded::Routing;
use tollgate_stores::{Atomic, Deadline, Fallback, LocalShare, Shard, Sharded};

use crate::atomic::{over, sharded};
use crate::setup::key;

fn local_share() -> LocalShare<Memory> {
    LocalShare::new(Memory::default(), NonZeroU32::MIN)
}

#[tokio::test]
async fn a_store_with_a_deadline_is_a_store() {
    check(&Deadline::new(Memory::default()), "deadline").await;
}

#[tokio::test]
async fn one_shard_is_a_store() {
    check(&over([Memory::default()]), "one").await;
}

#[tokio::test]
async fn several_shards_are_a_store() {
    let sharded = sharded([(); 3].map(|()| Memory::default())).with_routing(Routing::Subject);
    check(&Atomic::new(sharded), "several").await;
}

#[tokio::test]
async fn a_store_with_a_stand_in_is_a_store() {
    check(&Fallback::new(Memory::default(), local_share()), "fallback").await;
}

#[tokio::test]
async fn the_stand_in_of_a_single_node_is_a_store() {
    check(&local_share(), "alone").await;
}

#[tokio::test]
async fn a_store_whose_refusals_are_remembered_is_a_store() {
    let store = DenyCache::new(Memory::default())
        .with_ttl(DenyCacheTtl::UntilReset)
        .with_status_max_age(Millis::ZERO);
    check_one_quota(&store, "refused").await;
}

#[tokio::test]
async fn a_whole_topology_is_a_store() {
    let shard = Shard {
        name: "only".into(),
        weight: 1,
        store: Fallback::new(
            Deadline::new(Memory::default()),
            FallbackChoice::Local(local_share()),
        ),
    };
    let shards = Atomic::new(Sharded::new(key(), [shard]).unwrap());
    let store = DenyCache::new(Deadline::new(shards))
        .with_ttl(DenyCacheTtl::UntilReset)
        .with_status_max_age(Millis::ZERO);
    check_one_quota(&store, "topology").await;
}
