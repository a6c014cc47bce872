//! Settings of the deployment: trusted proxies and the store.

use super::{HeaderName, Memcached, Memory, Redis, Rollout, Shadow};
use crate::decode::{Integer, keys};

keys! {
    /// How the trusted proxies announce the client's address.
    struct Forwarded as "forwarding" {
        /// The header that the trusted proxies write. By default `x-forwarded-for`.
        header: HeaderName,
        /// The most proxies between a client and this node, 1 to 32. By default the number of
        /// trusted proxies, up to 32.
        hops: Integer,
    }
}

keys! {
    /// The store of the counters: exactly one of these kinds.
    struct Store as "a store" {
        /// The counters are in the memory of this process, with bounds.
        memory: Memory,
        /// The counters are in Redis or Valkey, and all nodes share them.
        redis: Redis,
        /// The counters are in memcached, and all nodes share them. For fleets without Redis, and for
        /// migration from an older limiter.
        memcached: Memcached,
        /// The counters of a client are in one of two stores, by a percentage of clients. For moving to
        /// another store.
        rollout: Rollout,
        /// The counters are in one store, which is compared with a second store.
        shadow: Shadow,
    }
}
