//! The store in memcached against bytes that no memcached sends.

mod hostile;
#[path = "../kit/mod.rs"]
mod kit;
