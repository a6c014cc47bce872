//! Real Envoy in front of a service, with `tollgate serve` as its rate limit service: the shipped
//! configurations, whose ports and limits each test makes its own.

mod clients;
mod counts;
mod envoy;
mod failure;
mod give_back;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod local_first;
mod service;
mod site;
mod tollgate;
#[path = "../commands/world.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod world;
