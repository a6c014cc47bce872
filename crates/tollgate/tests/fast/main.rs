//! Tests of the library's public API: limiter, memory store, wrappers, headers and the tower layer.

mod concurrency_wait;
mod decisions;
mod degraded;
mod examples;
mod headers;
mod leased_limits;
mod memory;
mod overflow;
mod plans;
mod public_api;
mod rate_limiter;
mod receipts;
mod replaced;
mod request_limiter;
mod reservations;
mod server_examples;
mod shed;
mod tenants;
mod tower;
mod trials;
mod user;
mod wrappers;
