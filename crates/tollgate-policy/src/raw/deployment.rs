//! What belongs to the deployment rather than to its limits, as written.

use super::{HeaderName, Memcached, Redis, Rollout, Shadow};
use crate::decode::{Size, Text, Whole, keys};

keys! {
    /// How the trusted proxies tell whom they forward for.
    struct Forwarded as "forwarding" {
        /// The header that they write. By default `x-forwarded-for`.
        header: HeaderName,
        /// The most proxies between a client and this node, 1 to 32. By default as many as are trusted, up to 32.
        hops: Whole,
    }
}

keys! {
    /// Where a secret comes from: exactly one source.
    struct Secret as "a secret" {
        /// The environment variable that holds it.
        env: Text,
        /// The file that holds it.
        file: Text,
    }
}

keys! {
    /// Where the counters are kept: in exactly one of these.
    struct Store as "a store" {
        /// In the memory of this process, and how much of it.
        memory: Memory,
        /// In Redis or Valkey, shared by all nodes.
        redis: Redis,
        /// In memcached, shared by all nodes: for fleets that have no Redis, and for moving away from an older limiter.
        memcached: Memcached,
        /// In one of two stores, by a percentage of clients: for moving to another store.
        rollout: Rollout,
        /// In a store with which another one is compared.
        shadow: Shadow,
    }
}

keys! {
    /// How much the store in memory may hold.
    struct Memory as "bounds" {
        /// The most counters. By default 1,000,000.
        max_entries: Whole,
        /// The most bytes. By default `64MiB`.
        max_bytes: Size,
    }
}
