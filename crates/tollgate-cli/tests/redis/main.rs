//! `tollgate proxy` over shards of Redis: real processes, real servers, real outages.

#[path = "../serve/collector.rs"]
mod collector;
mod exact;
mod failover;
mod fleet;
mod flush;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod leases;
mod load;
mod on_failure;
mod reads;
mod start;
mod traces;
#[path = "../commands/world.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod world;
