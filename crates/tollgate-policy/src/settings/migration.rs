//! Rollouts and shadow stores.

use tollgate_core::Percent;

use super::{MemcachedSettings, MemoryBounds, RedisSettings, StoreSettings};

/// A rollout: one store decides for a percentage of all clients, another one for the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutSettings {
    /// The percentage of clients that `to` decides for.
    pub percent: Percent,
    /// The treatment of a client's counters when it moves.
    pub on_move: OnMove,
    /// The store that clients move from.
    pub from: MigrationStoreSettings,
    /// The store that clients move to.
    pub to: MigrationStoreSettings,
}

/// A shadow store: one store decides, and a second one is compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowSettings {
    /// The percentage of clients whose decisions are compared.
    pub percent: Percent,
    /// The store that decides.
    pub store: MigrationStoreSettings,
    /// The store that is compared.
    pub compared_with: MigrationStoreSettings,
}

/// The treatment of a client's counters when it moves from one store to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMove {
    /// Used units and the current window are transferred.
    #[default]
    Transfer,
    /// The counters start from zero.
    Reset,
}

/// One of two stores. It cannot itself be a rollout or a shadow store.
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
