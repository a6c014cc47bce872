//! The settings of rollouts and shadow stores.

use tollgate_core::Percent;

use super::{MemcachedSettings, MemoryBounds, RedisSettings, StoreSettings};

/// A rollout: one store decides for a percentage of all clients, and another store decides for the
/// rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutSettings {
    /// The percentage of clients for which `to` decides.
    pub percent: Percent,
    /// What happens to a client's counters when the client moves to the other store.
    pub on_move: OnMove,
    /// The store from which clients move.
    pub from: MigrationStoreSettings,
    /// The store to which clients move.
    pub to: MigrationStoreSettings,
}

/// A shadow store: one store decides, and a second store is compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowSettings {
    /// The percentage of clients whose decisions are compared.
    pub percent: Percent,
    /// The store that decides.
    pub store: MigrationStoreSettings,
    /// The store that is compared with the deciding store. The decisions of this store are counted
    /// and not obeyed.
    pub compared_with: MigrationStoreSettings,
}

/// What happens to a client's counters when the client moves from one store to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMove {
    /// The used units and the current window are transferred to the other store.
    #[default]
    Transfer,
    /// The counters start from zero.
    Reset,
}

/// One of the two stores of a rollout or a shadow store. Such a store is not itself a rollout or a
/// shadow store.
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
