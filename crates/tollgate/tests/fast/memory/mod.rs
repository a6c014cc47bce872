//! Tests of the memory store's public API: its bounds, and evictions.

mod atomicity;
mod bounds;
mod conformance;
mod eviction;
mod history;
mod large;
mod overflow;
mod quota;
mod refunds;
mod sweep;
mod world;
