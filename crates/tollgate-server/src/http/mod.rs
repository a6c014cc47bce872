//! The HTTP/JSON door: charges, looks, standings and refunds for any program that speaks HTTP.

mod answer;
mod app;
mod authorize;
mod body;
mod check;
mod door;
mod gate;
mod health;
mod idempotency;
mod json;
mod metrics;
mod openapi;
mod problem;
mod query;
mod refund;
mod reload;
mod respond;
mod rollout;
mod route;
mod routes;
mod shown;
mod standing;
mod status;
mod top;
mod wire;

pub use app::{HttpOptions, Readiness};
pub use body::MAX_BODY_BYTES;
pub use door::HttpDoor;
pub use idempotency::{MAX_KEY_BYTES, MAX_REMEMBERED, MAX_REMEMBERED_BYTES, REMEMBERED_FOR};
pub use metrics::Metrics;
pub use openapi::openapi;
pub use reload::Reload;
pub use routes::router;
pub use status::Status;
