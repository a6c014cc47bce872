//! What a policy file says beside the policy: how this deployment keeps its secret and its state.

use std::path::PathBuf;

/// Settings of the deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where the key comes from under which credentials are hashed.
    pub key: KeySource,
    /// How much the store in memory may hold.
    pub memory: MemoryBounds,
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

impl Default for MemoryBounds {
    /// A million counters in at most 64 MiB.
    fn default() -> Self {
        Self { max_entries: 1_000_000, max_bytes: 64 << 20 }
    }
}
