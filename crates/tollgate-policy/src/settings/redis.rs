//! The settings of shards in Redis or Valkey, with checked names and URLs.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::KeySource;
use crate::redact::redact_word;

/// The shortest deadline of decisions in Redis. A server refuses calls that arrive after their
/// deadline, and nodes know its clock to two milliseconds at best, so a call with less time is not
/// sent. A call has one millisecond less than its decision. The last millisecond is the time in
/// which the call must be sent.
pub const MIN_REDIS_DEADLINE: Duration = Duration::from_millis(4);

/// The settings of the Redis or Valkey store: its shards and how nodes use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// The shards in file order, at least one.
    pub shards: Vec<ShardSettings>,
    /// The name of the subject that determines the shard of a request's counters. If this is
    /// `None`, the first subject of each limit determines the shard.
    pub route_by: Option<Box<str>>,
    /// The previous shard map, while subjects move to `shards`.
    pub previous: Option<PreviousShardMap>,
    /// The deadline of a decision.
    pub deadline: Duration,
    /// The number of nodes that share the limits. While the store does not answer, a node with the
    /// local fallback admits the quota divided by this number.
    pub nodes: NonZeroU32,
    /// The clock that provides the time of decisions.
    pub clock: DecisionClock,
    /// The servers from which a client's status is read.
    pub reads: ReadFrom,
    /// Whether this node keeps a deny cache.
    pub remember_refusals: DenyCacheMode,
    /// Whether the step that decides a call runs on the servers as a module, a function or a
    /// script.
    pub step: StepForm,
    /// The user name for server URLs without one.
    pub user: Option<Box<str>>,
    /// The source of the password of `user`.
    pub password: Option<KeySource>,
    /// Certificates for servers that are reached with TLS.
    pub tls: TlsFiles,
    /// Credentials and certificates for the sentinels.
    pub sentinel: SentinelAccess,
    /// The names of the limits whose subjects are readable in the names of Redis keys.
    pub revealed: Vec<Box<str>>,
}

/// The previous shard map of a rebalance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousShardMap {
    /// The shards of the previous map, at least one. A shard that is in both maps has the same
    /// servers in both.
    pub shards: Vec<ShardSettings>,
    /// The name of the subject that determined the shard of counters. If this is `None`, the first
    /// subject of each limit determined the shard.
    pub route_by: Option<Box<str>>,
}

/// Credentials and certificates for connections to sentinels. The credentials and certificates for
/// the servers are not used for sentinels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentinelAccess {
    /// The user name for sentinel URLs without one.
    pub user: Option<Box<str>>,
    /// The source of the password of `user`.
    pub password: Option<KeySource>,
    /// Certificates for sentinels with `rediss` URLs.
    pub tls: TlsFiles,
}

/// The settings of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// The name that identifies the shard. The name does not depend on the addresses of the
    /// servers.
    pub name: Box<str>,
    /// The way in which the servers of the shard are found.
    pub topology: Topology,
    /// The shard's share of all subjects, relative to the weights of the other shards; at least 1.
    pub weight: NonZeroU32,
}

/// The way in which the servers of a shard are found. The `Debug` output masks the passwords of
/// URLs.
#[derive(Clone, PartialEq, Eq)]
pub enum Topology {
    /// The policy file lists the servers.
    Static {
        /// The URL of the server that accepts writes.
        primary: Box<str>,
        /// The URLs of the replicas.
        replicas: Vec<Box<str>>,
    },
    /// Sentinels announce the servers.
    Sentinel {
        /// The URLs of sentinels, at least one.
        sentinels: Vec<Box<str>>,
        /// The service name that the sentinels use for the shard.
        service: Box<str>,
        /// The transport to the servers that sentinels announce.
        transport: Transport,
    },
    /// The shard is a Redis Cluster.
    Cluster {
        /// The URLs of some of the cluster's nodes, at least one.
        nodes: Vec<Box<str>>,
    },
}

/// The transport to servers that sentinels announce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// The connections are not encrypted.
    #[default]
    Tcp,
    /// The connections use TLS.
    Tls,
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let masked =
            |urls: &[Box<str>]| -> Vec<_> { urls.iter().map(|url| redact_word(url)).collect() };
        match self {
            Self::Static { primary, replicas } => f
                .debug_struct("Static")
                .field("primary", &redact_word(primary))
                .field("replicas", &masked(replicas))
                .finish(),
            Self::Sentinel { sentinels, service, transport } => f
                .debug_struct("Sentinel")
                .field("sentinels", &masked(sentinels))
                .field("service", service)
                .field("transport", transport)
                .finish(),
            Self::Cluster { nodes } => {
                f.debug_struct("Cluster").field("nodes", &masked(nodes)).finish()
            }
        }
    }
}

/// The clock that provides the time of decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionClock {
    /// The clock of this machine.
    #[default]
    Application,
    /// The clock of the shard that has the counters.
    Store,
}

/// The servers from which a client's status is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// Replicas, and the primary if no replica can answer.
    #[default]
    Replicas,
    /// Only primaries.
    Primaries,
}

/// Whether a node keeps a deny cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenyCacheMode {
    /// A refusal is cached until the time at which the same charge can fit. If a refund could free
    /// units earlier, the refusal is cached only for a few milliseconds.
    #[default]
    Enabled,
    /// Refusals are never cached. Every charge is sent to the store.
    Disabled,
}

/// Whether the step that decides a call runs on the servers as a module, a function or a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepForm {
    /// The step runs in the server module if the server has loaded it, otherwise as a function if
    /// the server supports functions, otherwise as a script.
    #[default]
    Automatic,
    /// The step runs in the server module. The module stores the state in tables that many subjects
    /// share.
    Tables,
    /// The step runs as a function on every server.
    Function,
    /// The step runs as a script on every server.
    Script,
}

/// PEM files for connections with TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate authorities to trust instead of the system's.
    pub authorities: Option<PathBuf>,
    /// This node's certificate and its key, for servers that require a client certificate.
    pub identity: Option<TlsIdentity>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The file with the certificate and its chain.
    pub certificate: PathBuf,
    /// The file with the certificate's key.
    pub key: PathBuf,
}
