//! Tests of the library's public API: limiter, memory store, wrappers, headers and the tower layer.

mod axum_example;
mod concurrency_wait;
mod decisions;
mod degraded;
mod headers;
mod leased_limits;
mod memory;
mod overflow;
mod receipts;
mod replaced;
mod reservations;
mod shed;
mod tower;
mod trials;
mod user;
mod wrappers;
