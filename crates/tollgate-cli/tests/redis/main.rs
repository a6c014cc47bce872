//! Nodes over shards of Redis: real processes, real servers, real outages.

#[path = "../serve/client.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod client;
#[path = "../serve/collector.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod collector;
mod exact;
mod failover;
mod fleet;
mod flush;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod leases;
mod load;
#[path = "../serve/world.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod node;
mod on_failure;
mod reads;
mod restart;
mod start;
mod traces;
mod visitors;
#[path = "../commands/world.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod world;
