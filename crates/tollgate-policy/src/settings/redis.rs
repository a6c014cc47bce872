//! Shards in Redis or Valkey, as meant.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::KeySource;
use crate::redact::redact_word;

/// Shards in Redis or Valkey, and how they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// The shards in the order of the file, at least one.
    pub shards: Vec<ShardSettings>,
    /// The name of the subject that says on which shard a request's counters live; the first of
    /// each limit's subjects if it is not said.
    pub route_by: Option<Box<str>>,
    /// The map that is left, while subjects move to `shards`.
    pub previous: Option<PreviousShardMap>,
    /// How long a decision may take.
    pub deadline: Duration,
    /// How many nodes share the limits: what one of them may admit alone is one part in so many.
    pub nodes: NonZeroU32,
    /// Whose time decides.
    pub clock: DecisionClock,
    /// Which servers are asked how a client stands.
    pub reads: ReadFrom,
    /// Whether this node refuses by itself what was refused until a known time.
    pub remember_refusals: DenyCacheMode,
    /// How the step runs in the servers.
    pub step: StepForm,
    /// The user as whom to connect, where a server's URL names none.
    pub user: Option<Box<str>>,
    /// That user's password.
    pub password: Option<KeySource>,
    /// Certificates, for servers that are reached under TLS.
    pub tls: TlsFiles,
    /// As whom sentinels are reached.
    pub sentinel: SentinelAccess,
    /// The names of the limits whose subjects stand in the keys in clear.
    pub revealed: Vec<Box<str>>,
}

/// A map of shards that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousShardMap {
    /// Its shards, at least one. Those that stay have the same servers in both maps.
    pub shards: Vec<ShardSettings>,
    /// The name of the subject that said on which shard counters lived, if one did.
    pub route_by: Option<Box<str>>,
}

/// As whom sentinels are reached. Nothing that is said of servers is meant for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentinelAccess {
    /// The user as whom to connect, where a sentinel's URL names none.
    pub user: Option<Box<str>>,
    /// That user's password.
    pub password: Option<KeySource>,
    /// Certificates, for sentinels at `rediss` URLs.
    pub tls: TlsFiles,
}

/// One shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// What makes it itself, wherever its servers are.
    pub name: Box<str>,
    /// How it is known which servers it has.
    pub topology: Topology,
    /// How much of all subjects it takes, beside the other shards' weights; at least 1.
    pub weight: NonZeroU32,
}

/// How it is known which servers a shard has. Its `Debug` shows no password of a URL.
#[derive(Clone, PartialEq, Eq)]
pub enum Topology {
    /// The file names them.
    Static {
        /// The URL of the server that takes writes.
        primary: Box<str>,
        /// The URLs of those that follow it.
        replicas: Vec<Box<str>>,
    },
    /// Sentinels name them.
    Sentinel {
        /// The URLs of sentinels, at least one.
        sentinels: Vec<Box<str>>,
        /// What they call the shard.
        service: Box<str>,
        /// How the servers are reached that they name.
        transport: Transport,
    },
    /// It is a Redis Cluster.
    Cluster {
        /// The URLs of some of its nodes, at least one.
        nodes: Vec<Box<str>>,
    },
}

/// How servers are reached that others name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// In clear.
    #[default]
    Tcp,
    /// Under TLS.
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

/// Whose time decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionClock {
    /// This machine's.
    #[default]
    Application,
    /// The shard's.
    Store,
}

/// Which servers are asked how a client stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// Replicas, and the primary where none is fit to answer.
    #[default]
    Replicas,
    /// Primaries alone.
    Primaries,
}

/// Whether refusals are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenyCacheMode {
    /// As long as is exact, or for a few milliseconds where a refund may free units.
    #[default]
    Enabled,
    /// Never: the store is always asked.
    Disabled,
}

/// How the step runs in the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepForm {
    /// As a function where the server has functions, else as a script.
    #[default]
    Automatic,
    /// As a function.
    Function,
    /// As a script.
    Script,
}

/// Files in PEM form for connections under TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities that are believed, instead of the machine's own.
    pub authorities: Option<PathBuf>,
    /// This node's certificate and its key, for servers that ask for one.
    pub identity: Option<TlsIdentity>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The file of the certificate and those that it is signed by.
    pub certificate: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
}
