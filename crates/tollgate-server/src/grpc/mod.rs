//! The gRPC listener: Envoy's global rate limit service, `envoy.service.ratelimit.v3`.
//!
//! The listener validates a request, charges the descriptors of the request in the way that the
//! policy defines for their domain, and sends the result in Envoy's form. The listener never
//! answers `UNKNOWN`, because Envoy would let such a request pass.

mod answer;
mod charge;
mod evaluation;
mod health;
mod json;
mod listener;
mod metadata;
pub mod proto;
mod refund;
mod report;
mod request;
mod routes;
mod service;
mod unary;

pub use json::json_route;
pub use listener::{DEFAULT_CONNECTION_AGE, GrpcListener};
pub use request::{MAX_DESCRIPTORS, MAX_ENTRIES, MAX_KEY_BYTES};
pub use unary::MAX_MESSAGE_BYTES;
