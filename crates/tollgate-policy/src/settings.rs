//! What a policy file says beside the policy: how this deployment keeps its secret and its state.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::masked::masked_word;

/// Settings of the deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where the key comes from under which credentials are hashed.
    pub key: KeySource,
    /// Where the counters are kept.
    pub store: StoreSettings,
    /// The doors that the file opens.
    pub serve: ServeSettings,
}

/// The doors of `tollgate serve`, those that the file opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeSettings {
    /// HTTP with JSON.
    pub http: Option<DoorSettings>,
    /// Envoy's rate limit service.
    pub grpc: Option<DoorSettings>,
    /// The Redis protocol.
    pub resp: Option<DoorSettings>,
    /// For those who run it.
    pub admin: Option<DoorSettings>,
}

/// One door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorSettings {
    /// An address and a port, `unix:/PATH` or `systemd:NAME`.
    pub listen: Box<str>,
    /// Where the tokens come from of which a client has to show one.
    pub tokens: Option<KeySource>,
    /// Certificates, for clients that speak TLS.
    pub tls: Option<DoorTlsFiles>,
}

/// Files in PEM form for the certificate of a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorTlsFiles {
    /// The certificate that is shown, and those that it is signed by.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities of clients; with them, a client has to show a certificate.
    pub clients: Option<PathBuf>,
}

/// Where the counters are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// In the memory of this process.
    Memory(MemoryBounds),
    /// In Redis or Valkey.
    Redis(Box<RedisSettings>),
}

impl StoreSettings {
    /// What a store in memory may hold that stands in for this one.
    #[must_use]
    pub fn memory(&self) -> MemoryBounds {
        match self {
            Self::Memory(bounds) => *bounds,
            Self::Redis(_) => MemoryBounds::default(),
        }
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self::Memory(MemoryBounds::default())
    }
}

/// Where the key comes from under which credentials are hashed before they are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// Made by chance when the process starts: enough for state that ends with the process.
    #[default]
    Random,
    /// The value of an environment variable.
    Environment {
        /// The variable's name.
        name: String,
    },
    /// The content of a file.
    File {
        /// Its path, as written.
        path: PathBuf,
    },
}

/// How much the store in memory may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBounds {
    /// The most counters, at least 1.
    pub max_entries: u64,
    /// The most bytes, at least 1.
    pub max_bytes: u64,
}

/// Shards in Redis or Valkey, and how they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// The shards in the order of the file, at least one.
    pub shards: Vec<ShardSettings>,
    /// The name of the subject that says on which shard a request's counters live; the first of
    /// each limit's subjects if it is not said.
    pub route_by: Option<Box<str>>,
    /// How long a decision may take.
    pub deadline: Duration,
    /// How many nodes share the limits: what one of them may admit alone is one part in so many.
    pub nodes: NonZeroU32,
    /// Whose time decides.
    pub clock: DecidingClock,
    /// Which servers are asked how a client stands.
    pub reads: Reads,
    /// Whether this node refuses by itself what was refused until a known time.
    pub remember_refusals: RememberRefusals,
    /// How the step runs in the servers.
    pub step: StepForm,
    /// The user as whom to connect, where a server's URL names none.
    pub user: Option<Box<str>>,
    /// That user's password.
    pub password: Option<KeySource>,
    /// Certificates, for servers at `rediss` URLs.
    pub tls: TlsFiles,
    /// The names of the limits whose subjects stand in the keys in clear.
    pub revealed: Vec<Box<str>>,
}

/// One shard: a primary, and replicas that follow it. Its `Debug` shows no password of a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct ShardSettings {
    /// What makes it itself, wherever its servers are.
    pub name: Box<str>,
    /// The URL of the server that takes writes.
    pub primary: Box<str>,
    /// The URLs of those that follow it.
    pub replicas: Vec<Box<str>>,
    /// How much of all subjects it takes, beside the other shards' weights; at least 1.
    pub weight: NonZeroU32,
}

impl fmt::Debug for ShardSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replicas: Vec<_> = self.replicas.iter().map(|url| masked_word(url)).collect();
        f.debug_struct("ShardSettings")
            .field("name", &self.name)
            .field("primary", &masked_word(&self.primary))
            .field("replicas", &replicas)
            .field("weight", &self.weight)
            .finish()
    }
}

/// Whose time decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecidingClock {
    /// This machine's.
    #[default]
    Application,
    /// The shard's.
    Store,
}

/// Which servers are asked how a client stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// Replicas, and the primary where none is fit to answer.
    #[default]
    Replicas,
    /// Primaries alone.
    Primaries,
}

/// Whether refusals are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RememberRefusals {
    /// As long as is exact, or for a few milliseconds where a refund may free units.
    #[default]
    Remember,
    /// Never: the store is always asked.
    AlwaysAsk,
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

impl Default for MemoryBounds {
    /// A million counters in at most 64 MiB.
    fn default() -> Self {
        Self { max_entries: 1_000_000, max_bytes: 64 << 20 }
    }
}
