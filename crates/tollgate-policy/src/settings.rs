//! What a policy file says beside the policy: how this deployment keeps its secret and its state.

mod memcached;
mod migration;
mod redis;
mod traces;

use std::path::PathBuf;

pub use memcached::{MemcachedLayout, MemcachedSettings};
pub use migration::{MigrationStoreSettings, OnMove, RolloutSettings, ShadowSettings};
pub use redis::{
    DecisionClock, DenyCacheMode, PreviousShardMap, ReadFrom, RedisSettings, SentinelAccess,
    ShardSettings, StepForm, TlsFiles, TlsIdentity, Topology, Transport,
};
pub use traces::{DEFAULT_SAMPLE, ParentSampling, TracesSettings};

/// Settings of the deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where the key comes from under which credentials are hashed.
    pub key: KeySource,
    /// Where the counters are kept.
    pub store: StoreSettings,
    /// The listeners that the file opens.
    pub serve: ServeSettings,
    /// Where spans of requests are sent, if the file says so.
    pub traces: Option<TracesSettings>,
    /// The limits whose subjects people may read, in the order of the file.
    pub revealed: Vec<Box<str>>,
}

/// The listeners of `tollgate serve`, those that the file opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeSettings {
    /// HTTP with JSON.
    pub http: Option<ListenerSettings>,
    /// Envoy's rate limit service.
    pub grpc: Option<ListenerSettings>,
    /// The Redis protocol.
    pub resp: Option<ListenerSettings>,
    /// For those who run it.
    pub admin: Option<ListenerSettings>,
    /// The page at that listener.
    pub dashboard: DashboardSettings,
}

/// The page for those who run it, at the administration's listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DashboardSettings {
    /// Whether it is there.
    pub shown: DashboardMode,
    /// The host names by which browsers reach that listener, in lower case, beside its addresses.
    pub hosts: Vec<Box<str>>,
}

/// Whether a page is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DashboardMode {
    /// It is.
    #[default]
    Enabled,
    /// It is not.
    Disabled,
}

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// An address and a port, `unix:/PATH` or `systemd:NAME`.
    pub listen: Box<str>,
    /// Where the tokens come from of which a client has to show one.
    pub tokens: Option<KeySource>,
    /// Certificates, for clients that speak TLS.
    pub tls: Option<ListenerTlsFiles>,
}

/// Files in PEM form for the certificate of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTlsFiles {
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
    /// In memcached.
    Memcached(Box<MemcachedSettings>),
    /// In one of two stores, by a percentage of clients.
    Rollout(Box<RolloutSettings>),
    /// In a store with which another one is compared.
    Shadow(Box<ShadowSettings>),
}

impl StoreSettings {
    /// What a store in memory may hold that stands in for this one.
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

impl MemoryBounds {
    /// The lists in the state of one subject may take one part in so many of the bytes.
    pub const STATE_OF: u64 = 32;

    /// The bytes of the largest state of one subject that is sure to find room.
    #[must_use]
    pub const fn largest_state(self) -> u64 {
        self.max_bytes / Self::STATE_OF
    }
}

impl Default for MemoryBounds {
    /// A million counters in at most 64 MiB.
    fn default() -> Self {
        Self { max_entries: 1_000_000, max_bytes: 64 << 20 }
    }
}
