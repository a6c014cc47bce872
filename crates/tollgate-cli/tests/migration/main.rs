//! Limits move between stores, and stores are compared: real processes over real servers.

#[path = "../serve/client.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod client;
mod disagree;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
#[path = "../../../tollgate-memcached/tests/kit/mod.rs"]
mod memcached;
mod metrics;
mod page;
mod shadow;
mod site;
mod status;
mod there_and_back;
#[path = "../serve/world.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod world;
