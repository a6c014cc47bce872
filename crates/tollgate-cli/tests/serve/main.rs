//! `tollgate serve` as it is run: real processes, real sockets, every listener.

mod access;
mod client;
mod collector;
mod dashboard;
mod drain;
mod flood;
mod grpc;
mod keys;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod metrics;
mod policy_reload;
mod reload;
mod restart;
mod secrets;
mod slow;
mod start;
mod top;
mod traces;
mod world;
