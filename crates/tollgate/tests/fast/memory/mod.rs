//! The memory store seen from outside: how much it holds, and what leaves it.

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
