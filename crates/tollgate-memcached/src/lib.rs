//! Rate limits in memcached: each node evaluates and writes the result by compare-and-swap.
//!
//! [`Memcached`] is a [`Store`](tollgate_core::Store) on one server. It is exact for one limit and
//! one subject, weaker for several limits in one call, and it can lose items because memcached is a
//! cache. Its documentation gives the bounds. It uses the meta commands of memcached's text
//! protocol (1.6), pipelined over a few connections. To use several servers, combine stores with
//! the wrappers of the `tollgate` crate.
//!
//! [`Layout::Pairs`] stores fixed windows as two items, a count and its reset, that programs of an
//! older limiter also read and write.

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
