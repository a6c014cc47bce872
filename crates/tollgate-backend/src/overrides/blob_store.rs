//! Where the overrides of nodes lie: a shard in Redis, or a server of memcached.

use std::time::Duration;

use tollgate::core::{CasOutcome, SharedBlob, StoreError, Subject};
use tollgate_memcached::Memcached;

use crate::backend::Backend;
use crate::backend_shard::BackendShard;
use crate::base_store::BaseStore;

/// What the document is called that holds them.
const NAME: &str = "overrides";

/// Who keeps the document.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlobStore<'s> {
    Redis(&'s BackendShard),
    Memcached(&'s Memcached),
}

impl<'s> BlobStore<'s> {
    /// The one of `store`: a hash of nobody chooses it, so that it is the same on every node. Of two
    /// stores it is the one that stays, if that shares anything.
    pub(super) fn of(store: &'s Backend) -> Option<Self> {
        match store {
            Backend::Rollout(moving) => {
                Self::at(moving.to().base_store()).or_else(|| Self::at(moving.from().base_store()))
            }
            Backend::Shadow(compared) => Self::at(compared.store().base_store()),
            Backend::Memory(_) | Backend::Redis(_) | Backend::Memcached(_) => {
                store.base_stores().into_iter().find_map(|(_, leaf)| Self::at(leaf))
            }
        }
    }

    fn at(leaf: BaseStore<'s>) -> Option<Self> {
        let nobody = Subject::default();
        match leaf {
            BaseStore::Memory(_) => None,
            BaseStore::Redis(fleet) => Some(Self::Redis(fleet.shards().shard_for(&nobody))),
            BaseStore::Memcached(fleet) => Some(Self::Memcached(fleet.shard_for(&nobody))),
        }
    }

    /// The document's version; empty where there is none.
    pub(super) async fn version(self) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Redis(shard) => shard.shared_blob_version(NAME).await,
            // An item is told whole or not at all.
            Self::Memcached(server) => Ok(server.shared_blob(NAME).await?.version),
        }
    }

    /// The document, an empty one where there is none.
    pub(super) async fn shared_blob(self) -> Result<SharedBlob, StoreError> {
        match self {
            Self::Redis(shard) => shard.shared_blob(NAME).await,
            Self::Memcached(server) => Ok(server.shared_blob(NAME).await?),
        }
    }

    /// Puts `document` in the place of the one of version `before`, for `lasting`.
    pub(super) async fn replace(
        self,
        before: &[u8],
        document: &SharedBlob,
        lasting: Duration,
    ) -> Result<CasOutcome, StoreError> {
        match self {
            Self::Redis(shard) => shard.replace_shared_blob(NAME, before, document, lasting).await,
            Self::Memcached(server) => {
                Ok(server.replace_shared_blob(NAME, before, document, lasting).await?)
            }
        }
    }
}
