//! The settings of the memcached store.

use std::num::NonZeroU32;
use std::time::Duration;

/// The memcached servers and their settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemcachedSettings {
    /// The addresses in file order, at least one. Each address is also the name of its server.
    pub servers: Vec<Box<str>>,
    /// The form in which limits are stored.
    pub layout: MemcachedLayout,
    /// The number of nodes that share the limits. A node's local fallback admits the quota divided
    /// by this number.
    pub nodes: NonZeroU32,
    /// The deadline of a decision.
    pub deadline: Duration,
    /// The names of the limits with readable subjects in the names of items.
    pub revealed: Vec<Box<str>>,
}

/// The form in which limits are stored in memcached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemcachedLayout {
    /// The state of a limit and a subject is stored as one item.
    #[default]
    Cell,
    /// A fixed window is stored as two items: a count and a reset time.
    Pairs,
}
