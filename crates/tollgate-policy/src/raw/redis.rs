//! Shards in Redis or Valkey, as written.

use super::choices::{ClockName, ReadsName, ScriptingName, TopologyName, TransportName};
use super::deployment::Secret;
use crate::decode::{Duration, Flag, Names, OneOrMore, Text, Whole, keys};

keys! {
    /// In Redis or Valkey: all nodes that name the same shards share one set of counters.
    struct Redis as "a Redis store", requires "shards" {
        /// The shards by their names, at most 1,024. A name stays when a server moves: it says which counters are kept there.
        shards: Names<Shard>,
        /// The map that is left, while shards are added, removed or weighted anew: what clients used moves along.
        previous: Previous,
        /// How many nodes share the limits: what one of them admits with `on_failure: local` is one part in so many. By default 1.
        nodes: Whole,
        /// How long a decision may take, whatever the servers do, `1ms` to `10s`. By default `15ms`.
        deadline: Duration,
        /// The subject that says on which shard a client's counters are. Limits that do not count per it, and all without it, go by the first of their `per`.
        route_by: Text,
        /// Whose time decides. By default `node`.
        clock: ClockName,
        /// Which servers are asked how a client stands. By default `replicas`.
        reads: ReadsName,
        /// Whether this node keeps a deny cache: it refuses without a call what the store refused until a known time. By default true.
        deny_cache: Flag,
        /// Whether the servers run decisions as a function or as a script. By default `auto`.
        scripting: ScriptingName,
        /// The user as whom to connect, where a server's URL names none.
        user: Text,
        /// Where that user's password comes from; it is read anew for each connection.
        password: Secret,
        /// Certificates, for servers at `rediss` URLs.
        tls: Tls,
        /// As whom sentinels are reached, and with which certificates: nothing of the servers' is theirs.
        sentinel: SentinelAccess,
    }
}

keys! {
    /// A map of shards that is left: `shards` and `route_by` as they were.
    struct Previous as "the map that is left", requires "shards" {
        /// The shards by their names. One that stays needs to say its `weight` alone; one that goes says where it is.
        shards: Names<Shard>,
        /// The subject that said on which shard a client's counters are, if one did.
        route_by: Text,
    }
}

keys! {
    /// A shard: a primary, and replicas that follow it, either named here or by sentinels; or a Redis Cluster.
    struct Shard as "a shard" {
        /// How its servers are known. By default what the other keys say.
        topology: TopologyName,
        /// The server that takes writes: `redis://HOST:PORT`, `rediss://HOST:PORT` with TLS, or `unix:///PATH`. A path of a number chooses a database, `?protocol=3` RESP3.
        primary: Text,
        /// The servers that follow it, at most 16.
        replicas: OneOrMore<Text>,
        /// The sentinels that watch over it, at most 16, as URLs like a server's: instead of `primary` and `replicas`.
        sentinels: OneOrMore<Text>,
        /// What the sentinels call it, as in their `sentinel monitor`.
        service: Text,
        /// Nodes of a Redis Cluster that is the shard, at most 16; the others are learnt from them.
        nodes: OneOrMore<Text>,
        /// How the servers are reached that sentinels name. By default `tcp`.
        transport: TransportName,
        /// How much of all clients it takes, beside the other shards' weights, 1 to 1,048,576. By default 1.
        weight: Whole,
    }
}

keys! {
    /// As whom sentinels are reached.
    struct SentinelAccess as "access to sentinels" {
        /// The user, where a sentinel's URL names none.
        user: Text,
        /// Where that user's password comes from; it is read anew for each connection.
        password: Secret,
        /// Certificates, for sentinels at `rediss` URLs.
        tls: Tls,
    }
}

keys! {
    /// Certificates and keys, as files in PEM form.
    struct Tls as "certificates" {
        /// The certificate authorities (CA) to trust, instead of the system's.
        ca: Text,
        /// This node's certificate, for servers that ask for one, and those that it is signed by.
        certificate: Text,
        /// The key of `certificate`.
        key: Text,
    }
}
