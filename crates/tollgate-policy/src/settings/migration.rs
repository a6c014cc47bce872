//! The settings of rollouts and shadow stores.

use tollgate_core::Percent;

use super::{MemcachedSettings, MemoryBounds, RedisSettings, StoreSettings};

/// A rollout: one store decides for a percentage of all clients, and another store decides for the
/// rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutSettings {
    /// The percentage of clients that `to` decides for.
    pub percent: Percent,
    /// The treatment of a client's counters when the client moves to the other store.
    pub on_move: OnMove,
    /// The store that clients move from.
    pub from: MigrationStoreSettings,
    /// The store that clients move to.
    pub to: MigrationStoreSettings,
}

/// A shadow store: one store decides, and a second store is compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowSettings {
    /// The percentage of clients whose decisions are compared.
    pub percent: Percent,
    /// The store that decides.
    pub store: MigrationStoreSettings,
    /// The store that is compared with the deciding store. Its decisions are counted and not
    /// obeyed.
    pub compared_with: MigrationStoreSettings,
}

/// The treatment of a client's counters when the client moves from one store to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMove {
    /// Used units and the current window are transferred.
    #[default]
    Transfer,
    /// The counters start from zero.
    Reset,
}

/// One of the two stores of a rollout or a shadow store. It cannot itself be a rollout or a shadow
/// store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationStoreSettings {
    /// The counters are in the memory of this process.
    Memory(MemoryBounds),
    /// The counters are in Redis or Valkey.
    Redis(Box<RedisSettings>),
    /// The counters are in memcached.
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
