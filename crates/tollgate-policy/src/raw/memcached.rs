//! The key `store.memcached`: servers of memcached.

use crate::decode::{Duration, Integer, OneOrMore, Text, choices, keys};
use crate::settings::MemcachedLayout;

keys! {
    /// In memcached: all nodes with the same list of servers share one set of counters. A server
    /// that runs out of memory evicts counters.
    struct Memcached as "a memcached store", requires "servers" {
        /// The servers, at most 1,024: `HOST:PORT` or `unix:/PATH`. The text of an address
        /// determines which counters that server has, so write the same text on every node.
        servers: OneOrMore<Text>,
        /// How limits are stored. By default `cell`.
        layout: LayoutName,
        /// The number of nodes that share the limits: with `on_failure: local`, each node admits
        /// its share, the quota divided by this number. By default 1.
        nodes: Integer,
        /// The deadline of a decision, however slow the servers are, `1ms` to `10s`. By default
        /// `15ms`.
        deadline: Duration,
    }
}

choices! {
    /// How limits are stored in memcached.
    struct LayoutName(MemcachedLayout) as "a layout" {
        /// The state of a limit for one subject is one item.
        "cell" => MemcachedLayout::Cell,
        /// Each fixed window as two items, the count and its reset time, which programs of an older
        /// limiter also read and write.
        "pairs" => MemcachedLayout::Pairs,
    }
}
