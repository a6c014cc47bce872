//! The settings of a policy file that do not affect which requests are charged: secrets, the store,
//! listeners and tracing.

mod memcached;
mod migration;
mod redis;
mod traces;

use std::path::PathBuf;

pub use memcached::{MemcachedLayout, MemcachedSettings};
pub use migration::{MigrationStoreSettings, OnMove, RolloutSettings, ShadowSettings};
pub use redis::{
    DecisionClock, DenyCacheMode, MIN_REDIS_DEADLINE, PreviousShardMap, ReadFrom, RedisSettings,
    SentinelAccess, ShardSettings, StepForm, TlsFiles, TlsIdentity, Topology, Transport,
};
pub use traces::{DEFAULT_SAMPLE, ParentSampling, TracesSettings};

/// The settings of the deployment: secrets, the store, listeners and tracing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The source of the key with which credentials are hashed.
    pub key: KeySource,
    /// The store of the counters.
    pub store: StoreSettings,
    /// The listeners that the file configures.
    pub serve: ServeSettings,
    /// The collector that receives spans, if the file configures one.
    pub traces: Option<TracesSettings>,
    /// The names of the limits whose subjects are readable in the store, in file order.
    pub revealed: Vec<Box<str>>,
}

/// The listeners of `tollgate serve` that the file configures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeSettings {
    /// The listener for HTTP with JSON.
    pub http: Option<ListenerSettings>,
    /// The listener for Envoy's rate limit service.
    pub grpc: Option<ListenerSettings>,
    /// The listener for the Redis protocol.
    pub resp: Option<ListenerSettings>,
    /// The admin listener.
    pub admin: Option<ListenerSettings>,
    /// The dashboard at the admin listener.
    pub dashboard: DashboardSettings,
}

/// The dashboard, a page for operators at the admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DashboardSettings {
    /// Whether the dashboard is served.
    pub shown: DashboardMode,
    /// Whether the node keeps a sample of its requests, for simulations.
    pub samples_traffic: bool,
    /// The host names by which browsers reach the admin listener, in lower case, in addition to the
    /// listener's addresses.
    pub hosts: Vec<Box<str>>,
}

impl Default for DashboardSettings {
    fn default() -> Self {
        Self { shown: DashboardMode::default(), samples_traffic: true, hosts: Vec::new() }
    }
}

/// Whether the dashboard is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DashboardMode {
    /// The dashboard is served.
    #[default]
    Enabled,
    /// The dashboard is not served.
    Disabled,
}

/// The settings of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// The address of the listener: an address and a port, `unix:/PATH` or `systemd:NAME`.
    pub listen: Box<str>,
    /// The source of the access tokens. A client must send one of these tokens. If this is `None`,
    /// no token is required.
    pub tokens: Option<KeySource>,
    /// The certificate files, if clients connect with TLS.
    pub tls: Option<ListenerTlsFiles>,
    /// The host names by which clients reach the HTTP listener, in lower case. The list is empty
    /// for other listeners.
    pub hosts: Vec<Box<str>>,
}

/// The PEM files with the certificates of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTlsFiles {
    /// The certificate with its chain.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The certificate authorities of clients. If this is set, a client must present a certificate
    /// that one of them signed.
    pub clients: Option<PathBuf>,
}

/// The store of the counters, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// The counters are in the memory of this process.
    Memory(MemoryBounds),
    /// The counters are in Redis or Valkey.
    Redis(Box<RedisSettings>),
    /// The counters are in memcached.
    Memcached(Box<MemcachedSettings>),
    /// The counters of a client are in the first or the second of two stores. The percentage of the
    /// rollout determines for how many clients the second store decides.
    Rollout(Box<RolloutSettings>),
    /// The counters are in one store, which is compared with a second store.
    Shadow(Box<ShadowSettings>),
}

impl StoreSettings {
    /// Returns the bounds of the memory store that is used for the local fallback, which decides
    /// while the configured store does not answer.
    #[must_use]
    pub fn memory(&self) -> MemoryBounds {
        match self {
            Self::Memory(bounds) => *bounds,
            Self::Redis(_) | Self::Memcached(_) | Self::Rollout(_) | Self::Shadow(_) => {
                MemoryBounds::default()
            }
        }
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self::Memory(MemoryBounds::default())
    }
}

/// The source of a secret, such as the key with which credentials are hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// A random secret, which is generated when the process starts. A random key for hashing is
    /// sufficient if the counters are in memory and end with the process.
    #[default]
    Random,
    /// The value of an environment variable.
    Environment {
        /// The variable's name.
        name: String,
    },
    /// The content of a file.
    File {
        /// The path of the file, as written in the policy file.
        path: PathBuf,
    },
}

/// The bounds of the memory store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBounds {
    /// The largest number of counters, at least 1.
    pub max_entries: u64,
    /// The largest size of the store in bytes, at least 1.
    pub max_bytes: u64,
}

impl MemoryBounds {
    /// The number by which [`max_bytes`](Self::max_bytes) is divided to get the bound on the state
    /// of one subject: the lists in that state can use at most `max_bytes / STATE_OF` bytes.
    pub const STATE_OF: u64 = 32;

    /// Returns the largest size in bytes of one subject's state. A state of this size always fits
    /// the store.
    #[must_use]
    pub const fn largest_state(self) -> u64 {
        self.max_bytes / Self::STATE_OF
    }
}

impl Default for MemoryBounds {
    /// Returns the default bounds: a million counters in at most 64 MiB.
    fn default() -> Self {
        Self { max_entries: 1_000_000, max_bytes: 64 << 20 }
    }
}
