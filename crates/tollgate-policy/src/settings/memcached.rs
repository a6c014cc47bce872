//! The settings of the memcached store.

use std::num::NonZeroU32;
use std::time::Duration;

/// The settings of the memcached store: its servers and how nodes use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemcachedSettings {
    /// The addresses in file order, at least one. Each address is also the name of its server.
    pub servers: Vec<Box<str>>,
    /// How the state of a limit and a subject is stored.
    pub layout: MemcachedLayout,
    /// The number of nodes that share the limits. While the store does not answer, a node with the
    /// local fallback admits the quota divided by this number.
    pub nodes: NonZeroU32,
    /// The deadline of a decision.
    pub deadline: Duration,
    /// The names of the limits whose subjects are readable in the names of memcached items.
    pub revealed: Vec<Box<str>>,
}

/// How the state of a limit and a subject is stored in memcached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemcachedLayout {
    /// The state of a limit and a subject is stored as one item.
    #[default]
    Cell,
    /// A fixed window is stored as two items: a count and a reset time.
    Pairs,
}
