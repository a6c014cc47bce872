//! The HTTP/JSON listener, tested by a program from its OpenAPI document.

mod schemathesis;
#[path = "../../fast/http/server.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod server;
#[path = "../../fast/http/world.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod world;
