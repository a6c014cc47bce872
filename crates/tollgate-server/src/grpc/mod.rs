//! The gRPC door: Envoy's global rate limit service, `envoy.service.ratelimit.v3`.
//!
//! A request is read and checked without a socket, its descriptors are charged as their domain in
//! the policy says, and what came of it is told as Envoy wants to hear it. The door never answers
//! that it does not know: Envoy would let the request pass.

mod answer;
mod charge;
mod door;
mod give_back;
mod health;
mod json;
mod judged;
mod metadata;
pub mod proto;
mod request;
mod routes;
mod service;
mod unary;

pub use door::{DEFAULT_CONNECTION_AGE, GrpcDoor};
pub use json::json_route;
pub use request::{MAX_DESCRIPTORS, MAX_ENTRIES, MAX_KEY_BYTES};
pub use service::MAX_MESSAGE_BYTES;
