//! Rate limiting for any Rust service: limiter, stores, headers and a tower layer.

pub mod store;
pub mod tower;
