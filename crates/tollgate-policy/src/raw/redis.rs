//! The key `store.redis`: shards in Redis or Valkey.

use super::choices::{ClockName, ReadsName, ScriptingName, TopologyName, TransportName};
use super::secret::Secret;
use crate::decode::{Duration, Flag, Integer, Names, OneOrMore, Text, keys};

keys! {
    /// In Redis or Valkey: all nodes with the same shards share one set of counters.
    struct Redis as "a Redis store", requires "shards" {
        /// The shards by name, at most 1,024. The name determines which counters a shard has, so
        /// keep it when a server moves.
        shards: Names<Shard>,
        /// The previous shard map, while shards are added, removed or weighted differently.
        /// Clients' counters move with them.
        previous: Previous,
        /// The number of nodes that share the limits: with `on_failure: local`, each node admits
        /// its share, the quota divided by this number. By default 1.
        nodes: Integer,
        /// The deadline of a decision, however slow the servers are, `4ms` to `10s`. By default
        /// `15ms`.
        deadline: Duration,
        /// The subject that determines the shard of a client's counters. Limits whose `per` does
        /// not contain it, and all limits if it is not set, are routed by the first subject of
        /// their `per`.
        route_by: Text,
        /// The clock for decisions. By default `node`.
        clock: ClockName,
        /// The servers that reads of a client's status are sent to. By default `replicas`.
        reads: ReadsName,
        /// Whether this node keeps a deny cache: after a refusal by the store it refuses the same
        /// charge without a call until a known time. By default true.
        deny_cache: Flag,
        /// How a decision runs on the servers: in the server module, as a function or as a script. By default `auto`.
        scripting: ScriptingName,
        /// The user name for server URLs without one.
        user: Text,
        /// The source of that user's password. It is read again for each connection.
        password: Secret,
        /// Certificates for servers with `rediss` URLs.
        tls: Tls,
        /// User, password and certificates for the sentinels. The servers' credentials are not used
        /// for sentinels.
        sentinel: SentinelAccess,
    }
}

keys! {
    /// The previous shard map: `shards` and `route_by` before the change.
    struct Previous as "the previous shard map", requires "shards" {
        /// The shards by name. A shard that stays needs only its `weight`. A shard that is removed
        /// needs its servers.
        shards: Names<Shard>,
        /// The subject that determined the shard of a client's counters, if one was set.
        route_by: Text,
    }
}

keys! {
    /// A shard: a primary with the replicas that follow it, listed here or announced by sentinels;
    /// or a Redis Cluster.
    struct Shard as "a shard" {
        /// How the shard's servers are found. The default follows from the other keys of the shard.
        topology: TopologyName,
        /// The server that accepts writes: `redis://HOST:PORT`, `rediss://HOST:PORT` with TLS, or
        /// `unix:///PATH`. A number as path selects a database, and `?protocol=3` selects RESP3.
        primary: Text,
        /// The servers that follow the primary, at most 16.
        replicas: OneOrMore<Text>,
        /// The sentinels that monitor the shard, at most 16, as URLs like a server's, instead of
        /// `primary` and `replicas`.
        sentinels: OneOrMore<Text>,
        /// The shard's name in the sentinels' configuration (`sentinel monitor`).
        service: Text,
        /// Nodes of the Redis Cluster that is this shard, at most 16. The other nodes are
        /// discovered from these.
        nodes: OneOrMore<Text>,
        /// The transport to servers that sentinels announce. By default `tcp`.
        transport: TransportName,
        /// The shard's share of all clients, relative to the weights of the other shards, 1 to
        /// 1,048,576. By default 1.
        weight: Integer,
    }
}

keys! {
    /// Credentials and certificates for sentinels.
    struct SentinelAccess as "sentinel settings" {
        /// The user name for sentinel URLs without one.
        user: Text,
        /// The source of that user's password. It is read again for each connection.
        password: Secret,
        /// Certificates for sentinels with `rediss` URLs.
        tls: Tls,
    }
}

keys! {
    /// Certificates and keys, as PEM files.
    struct Tls as "certificates" {
        /// The certificate authorities (CA) to trust instead of the system's.
        ca: Text,
        /// This node's certificate with its chain, for servers that require one.
        certificate: Text,
        /// The key of `certificate`.
        key: Text,
    }
}
