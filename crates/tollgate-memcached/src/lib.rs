//! Rate limits in memcached. Each node reads the state of a limit, evaluates the charge, and writes
//! the new state by compare-and-swap.
//!
//! [`Memcached`] is a [`Store`](tollgate_core::Store) on one server. Calls on one limit and one
//! subject are exact. Calls on several limits have weaker guarantees, and items can be lost because
//! memcached is a cache. The documentation of [`Memcached`] gives the bounds. The store uses the
//! meta commands of memcached's text protocol (1.6), pipelined over a few connections. To use
//! several servers, combine stores with the wrappers of the `tollgate-stores` crate.
//!
//! [`Layout::Pairs`] stores a fixed window as two items, a count and its reset, which programs of
//! an older limiter can also read and write.

mod address;
mod call;
mod cells;
mod error;
mod expiry;
mod item_locks;
mod job;
mod key;
mod layout;
mod link;
mod shared_blob;
mod steps;
mod store;
mod wire;

pub use address::{Address, AddressError};
pub use error::MemcachedError;
pub use key::Keys;
pub use layout::Layout;
pub use link::{LinkError, Losses};
pub use steps::MAX_ATTEMPTS;
pub use store::{
    DEFAULT_CONNECTIONS, DEFAULT_DEADLINE, MAX_SPANNING_CALLS, Memcached, ServerSettings,
    ServerStatus,
};
pub use tollgate_link::LinkLimits;
