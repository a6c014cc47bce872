//! The Redis-protocol listener, called by common clients.

mod clients;
#[path = "../../fast/resp/kit.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod kit;
