//! Tests of the memcached store with bytes that memcached never sends.

mod hostile;
#[path = "../kit/mod.rs"]
mod kit;
