//! Two stores at once.

use tollgate_core::Percent;

use super::{MemcachedSettings, MemoryBounds, RedisSettings, StoreSettings};

/// Some percent of all clients are decided by one store, the rest by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutSettings {
    /// How many clients are decided by `to`.
    pub percent: Percent,
    /// What a client has that moves.
    pub on_move: OnMove,
    /// The store that clients leave.
    pub from: MigrationStoreSettings,
    /// The store that they go to.
    pub to: MigrationStoreSettings,
}

/// One store decides, another one is compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowSettings {
    /// How many clients are compared.
    pub percent: Percent,
    /// The store that decides.
    pub store: MigrationStoreSettings,
    /// The store that is asked too.
    pub compared_with: MigrationStoreSettings,
}

/// What a client has that moves from one store to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMove {
    /// What it had used, and the window that was running.
    #[default]
    Transfer,
    /// Nothing used.
    Reset,
}

/// One of two stores: it is no two stores itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationStoreSettings {
    /// In the memory of this process.
    Memory(MemoryBounds),
    /// In Redis or Valkey.
    Redis(Box<RedisSettings>),
    /// In memcached.
    Memcached(Box<MemcachedSettings>),
}

impl From<MigrationStoreSettings> for StoreSettings {
    fn from(side: MigrationStoreSettings) -> Self {
        match side {
            MigrationStoreSettings::Memory(bounds) => Self::Memory(bounds),
            MigrationStoreSettings::Redis(redis) => Self::Redis(redis),
            MigrationStoreSettings::Memcached(memcached) => Self::Memcached(memcached),
        }
    }
}
