//! Shards that come and go under processes that serve, and what `tollgate shards` tells of them.

mod access;
#[path = "../serve/client.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod client;
mod command;
mod disagree;
mod doctor;
mod fleet;
mod followed;
mod frozen;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod looks;
mod moving;
mod old_node;
#[path = "../serve/world.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod world;
