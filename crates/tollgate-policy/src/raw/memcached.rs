//! Servers of memcached, as written.

use crate::decode::{Duration, OneOrMore, Text, Whole, keys, words};
use crate::settings::MemcachedLayout;

keys! {
    /// In memcached: all nodes that name the same servers share one set of counters, which a server without memory for more forgets.
    struct Memcached as "a memcached store", requires "servers" {
        /// The servers, at most 1,024: `HOST:PORT` or `unix:/PATH`. The text says which counters are kept there: write it the same on every node.
        servers: OneOrMore<Text>,
        /// How limits lie in them. By default `cell`.
        layout: LayoutName,
        /// How many nodes share the limits: what one of them admits with `on_failure: local` is one part in so many. By default 1.
        nodes: Whole,
        /// How long a decision may take, whatever the servers do, `1ms` to `10s`. By default `15ms`.
        deadline: Duration,
    }
}

words! {
    /// How limits lie in memcached.
    struct LayoutName(MemcachedLayout) as "a layout" {
        /// Each limit as one item.
        "cell" => MemcachedLayout::Cell,
        /// Each fixed window as two items, the count and its reset, that programs of an older limiter read and write as well.
        "pairs" => MemcachedLayout::Pairs,
    }
}
