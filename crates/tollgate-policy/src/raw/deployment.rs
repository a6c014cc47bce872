//! Settings of the deployment: proxies and the store.

use super::{HeaderName, Memcached, Memory, Redis, Rollout, Shadow};
use crate::decode::{Whole, keys};

keys! {
    /// How the trusted proxies announce the client's address.
    struct Forwarded as "forwarding" {
        /// The header that the trusted proxies write. By default `x-forwarded-for`.
        header: HeaderName,
        /// The most proxies between a client and this node, 1 to 32. By default the number of
        /// trusted proxies, up to 32.
        hops: Whole,
    }
}

keys! {
    /// Where the counters are kept: exactly one of these.
    struct Store as "a store" {
        /// In the memory of this process, with bounds.
        memory: Memory,
        /// In Redis or Valkey, shared by all nodes.
        redis: Redis,
        /// In memcached, shared by all nodes. For fleets without Redis, and for migration from an
        /// older limiter.
        memcached: Memcached,
        /// In one of two stores, by a percentage of clients. For moving to another store.
        rollout: Rollout,
        /// In one store, which is compared with a second store.
        shadow: Shadow,
    }
}
