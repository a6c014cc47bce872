//! Limits in memcached: decided by each node, written back by compare-and-swap.
//!
//! [`Memcached`] is a [`Store`](tollgate_core::Store) on one server: exact for one limit and one
//! subject, weaker for several in one call, and with the memory of a cache; its documentation says
//! by how much. It speaks the meta commands of memcached's text protocol (1.6), pipelined over a
//! few connections. Several servers are a fleet by the wrappers of the `tollgate` crate.
//!
//! [`Layout::Pairs`] keeps fixed windows as the two items, a count and its reset, that programs of
//! an older limiter read and write as well.

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
pub use link::{LinkError, LinkLimits, Losses};
pub use steps::MAX_ATTEMPTS;
pub use store::{
    DEFAULT_CONNECTIONS, DEFAULT_DEADLINE, MAX_SPANNING_CALLS, Memcached, ServerSettings,
    ServerStatus,
};
