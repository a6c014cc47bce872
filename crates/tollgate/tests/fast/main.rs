//! Tests of the library's public API: limiter, memory store, headers and the tower layer.

mod at_once;
mod billing_days;
mod carried_over;
mod concurrency_wait;
mod decisions;
mod degraded;
mod examples;
#[expect(dead_code, reason = "the tests of `tollgate-stores` use all of it")]
mod faulty;
mod headers;
mod memory;
mod overflow;
mod plans;
mod public_api;
mod rate_limiter;
mod receipts;
mod request_limiter;
mod reservations;
mod server_examples;
mod shadow_permits;
mod shared_store;
mod shed;
mod tenants;
mod tower;
mod trials;
mod user;
