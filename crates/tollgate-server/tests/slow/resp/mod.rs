//! The Redis-protocol listener, asked by the clients that people use.

mod clients;
#[path = "../../fast/resp/kit.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod kit;
