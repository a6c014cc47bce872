//! Servers of memcached, and how they are used.

use std::num::NonZeroU32;
use std::time::Duration;

/// Servers of memcached, and how they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemcachedSettings {
    /// The addresses in the order of the file, at least one: each is the server's name as well.
    pub servers: Vec<Box<str>>,
    /// How limits lie in them.
    pub layout: MemcachedLayout,
    /// How many nodes share the limits: what one of them may admit alone is one part in so many.
    pub nodes: NonZeroU32,
    /// How long a decision may take.
    pub deadline: Duration,
    /// The names of the limits whose subjects stand in the names of items in clear.
    pub revealed: Vec<Box<str>>,
}

/// How limits lie in memcached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemcachedLayout {
    /// Each as one item.
    #[default]
    Cell,
    /// Fixed windows as a count and its reset.
    Pairs,
}
